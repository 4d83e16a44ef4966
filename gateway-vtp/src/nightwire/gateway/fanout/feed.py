"""Feeds: the events that go out at an address, to whom, in which shape.  Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from nightwire.gateway.net.access import Access, Door
from nightwire.gateway.net.addresses import Address
from nightwire.gateway.net.limits import Limits
from nightwire.gateway.vtp.frames import COMET_MAX_FRAME
from nightwire.schemas.topics import VOEVENTS

DEFAULT_FEED = "voevents"
"""Name of the feed that is always there."""
REPLAY = 3600.0
"""How far back a returning subscriber is served by default. [s]"""

PERIODS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}  # [s]
_RATE = re.compile(r"(\d+)\s*/\s*([a-z]+)")


@dataclass(frozen=True)
class Rate:
    """At most *events* in each *period* [s] of the records' time in Kafka."""

    events: int
    period: int


@dataclass(frozen=True)
class Feed:
    """One feed: a listening address and the events that its subscribers get there.

    Attributes:
        name: In the log, in metrics, and with the positions of its subscribers.
        address: Where it listens.
        topics: Where its events come from.
        access: Who may subscribe.
        template: Survey whose template makes VOEvents of alerts; None: as the record says.
        xpath: It carries events that match any of these; none means everything.
        default_xpath: The same for subscribers that ask for nothing themselves.
        roles: It carries events of these; none means every role, of whatever word.
        replay: How far back a subscriber is served that returns. [s]
        rate: At most so many events; None: all.
        where: It carries events whose records meet this condition; None: all.
    """

    name: str
    address: Address
    topics: tuple[str, ...] = (VOEVENTS,)
    access: Access = field(default_factory=Access)
    template: str | None = None
    xpath: tuple[str, ...] = ()
    default_xpath: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    replay: float = REPLAY
    rate: Rate | None = None
    where: str | None = None

    @property
    def has_alerts(self) -> bool:
        """Say whether it carries alerts, which a template makes VOEvents of."""
        return any(topic != VOEVENTS for topic in self.topics)


@dataclass(frozen=True)
class SubscriberSettings:
    """Connections from subscribers.

    Attributes:
        feeds: What they may subscribe to, the default feed first.
        tls_door: Where they get the default feed by TLS as well; None: nowhere.
        limits: Connections and times, of each feed.
        iamalive: Time between iamalive messages. [s]
        max_frame: Longest event for those that gave no limit of their own. [byte]
        answer_timeout: Longest time that one may take over a signed answer. [s]
    """

    feeds: tuple[Feed, ...] = ()
    tls_door: Door | None = None
    limits: Limits = field(default_factory=Limits)
    iamalive: float = 60.0
    max_frame: int = COMET_MAX_FRAME
    answer_timeout: float = 20.0


def read_rate(text: str) -> Rate:
    """Return the rate that *text* says, such as ``20/minute``.

    Raises:
        ValueError: It says none.
    """
    found = _RATE.fullmatch(text.strip())
    period = PERIODS.get(found[2]) if found else None
    if not found or period is None or int(found[1]) == 0:
        raise ValueError(f"{text!r} is no rate: write a number, / and {', '.join(PERIODS)}: 20/minute")
    return Rate(int(found[1]), period)


def feed_topics(feeds: Iterable[Feed]) -> tuple[str, ...]:
    """Return the topics of *feeds*, each once, and `voevents`, which holds retractions."""
    return tuple(dict.fromkeys([VOEVENTS, *(topic for feed in feeds for topic in feed.topics)]))
