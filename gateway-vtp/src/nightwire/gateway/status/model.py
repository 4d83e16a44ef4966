"""Who is connected, what came and went, and who was refused: what the status page shows.

Pure, but for reading the clock that it is given.  Written by the event loop; `status` may be called
from another thread.
"""

import math
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

SPAN = 60.0
"""Rates are of about the last minute. [s]"""
LOOK = 1.0
"""Time between looks at what was sent to subscribers. [s]"""
MOST_AUTHORS = 200
"""Addresses of authors that are remembered; the one that was silent longest is forgotten."""
MOST_LEFT = 20
"""Subscribers that left and are remembered."""


class Traffic:
    """Events that went one way: how many, how often, and the last of them."""

    def __init__(self) -> None:
        self.events = 0
        self.last: float | None = None
        self.ivorn: str | None = None
        self._rate, self._at = 0.0, 0.0

    def note(self, now: float, ivorn: str | None, events: int = 1) -> None:
        """Note *events* at *now* [s], of which *ivorn* is the last."""
        self._rate = self.rate(now) + events / SPAN
        self._at = self.last = now
        self.events += events
        self.ivorn = ivorn or self.ivorn

    def rate(self, now: float) -> float:
        """Return the events per second of about the last minute."""
        return self._rate * math.exp((self._at - now) / SPAN)

    def row(self, now: float) -> dict[str, Any]:
        """Return it in JSON's terms."""
        silent = None if self.last is None else round(now - self.last, 1)
        return {
            "events": self.events,
            "rate": round(self.rate(now), 3),
            "last_event": _iso(self.last),
            "silent_s": silent,
            "last_ivorn": self.ivorn,
        }


class ConnectionStatus(Protocol):
    """One connection from a subscriber."""

    def status(self) -> dict[str, Any]:
        """Return its ivoid, feed, filters, sent, acked, naked, unacked, lag."""


@dataclass
class _Subscriber:
    address: str
    since: float
    connection: ConnectionStatus
    traffic: Traffic = field(default_factory=Traffic)

    def look(self, now: float) -> None:
        """Note what was sent since the last look."""
        new = self.connection.status()["sent"] - self.traffic.events
        if new:
            self.traffic.note(now, None, new)

    def row(self, now: float) -> dict[str, Any]:
        since = {"address": self.address, "since": _iso(self.since)}
        return {**since, **self.connection.status(), **self.traffic.row(now)}


@dataclass
class _Remote:
    connected: bool = False
    since: float | None = None
    reason: str | None = None
    outcomes: Counter[str] = field(default_factory=Counter)
    traffic: Traffic = field(default_factory=Traffic)


@dataclass
class _Author:
    outcomes: Counter[str] = field(default_factory=Counter)
    reason: str | None = None
    traffic: Traffic = field(default_factory=Traffic)


@dataclass
class _Refused:
    count: int = 0
    host: str = ""
    at: float = 0.0


class StatusModel:
    """What one gateway's status page shows.

    Args:
        ivorn: Of the gateway.
        clock: The time [s since 1970].
    """

    def __init__(self, ivorn: str, clock: Callable[[], float]) -> None:
        self._ivorn, self._clock = ivorn, clock
        self._started = self._looked = clock()
        self._listening: dict[str, str] = {}
        self._feeds: dict[str, Traffic] = {}
        self._subscribers: dict[int, _Subscriber] = {}
        self._left: deque[dict[str, Any]] = deque(maxlen=MOST_LEFT)
        self._remotes: dict[str, _Remote] = {}
        self._authors: OrderedDict[str, _Author] = OrderedDict()
        self._refused: dict[tuple[str, str], _Refused] = {}

    def listens(self, role: str, address: str) -> None:
        """Note an address that is listened on, for authors or for a feed's subscribers."""
        self._listening[role] = address

    def feed(self, name: str) -> None:
        """Note a feed, of which nothing need have come."""
        self._feeds.setdefault(name, Traffic())

    def published(self, feed: str, ivorn: str, events: int = 1) -> None:
        """Note *events* that came on *feed*, of which *ivorn* is the last."""
        self._feeds.setdefault(feed, Traffic()).note(self._clock(), ivorn, events)

    @contextmanager
    def subscriber(self, address: str, connection: ConnectionStatus) -> Iterator[None]:
        """Show a subscriber at *address* while it is there, and for some time after."""
        seen = _Subscriber(address, self._clock(), connection)
        self._subscribers[id(seen)] = seen
        try:
            yield
        finally:
            del self._subscribers[id(seen)]
            now = self._clock()
            self._left.appendleft({**seen.row(now), "left": _iso(now)})

    def look(self) -> None:
        """Note what was sent to subscribers; call it about once a second."""
        now = self._clock()
        if now - self._looked >= LOOK:
            self._looked = now
            for one in list(self._subscribers.values()):
                one.look(now)

    def remote(self, address: str, *, connected: bool, reason: str | None = None) -> None:
        """Note that the connection to a remote broker began or ended, and why it ended."""
        seen = self._remotes.setdefault(address, _Remote())
        if connected or seen.connected or seen.since is None:
            seen.since = self._clock()
        seen.connected, seen.reason = connected, reason

    def from_remote(self, address: str, outcome: str, ivorn: str | None) -> None:
        """Note what became of an event from a remote broker."""
        seen = self._remotes.setdefault(address, _Remote())
        seen.outcomes[outcome] += 1
        seen.traffic.note(self._clock(), ivorn)

    def from_author(self, host: str, outcome: str, ivorn: str | None, reason: str | None = None) -> None:
        """Note what became of an event from an author at *host*, and why it was refused."""
        if (seen := self._authors.get(host)) is None:
            seen = self._authors[host] = _Author()
        self._authors.move_to_end(host)
        if len(self._authors) > MOST_AUTHORS:
            self._authors.popitem(last=False)
        seen.outcomes[outcome] += 1
        seen.reason = reason or seen.reason
        seen.traffic.note(self._clock(), ivorn)

    def refused(self, role: str, host: str, reason: str) -> None:
        """Note a connection that was refused."""
        seen = self._refused.setdefault((role, reason), _Refused())
        seen.count, seen.host, seen.at = seen.count + 1, host, self._clock()

    def silent_since(self) -> Mapping[str, float]:
        """Return when each feed had its last event, or when we started. [s since 1970]"""
        return {
            name: self._started if one.last is None else one.last for name, one in list(self._feeds.items())
        }

    def status(self) -> dict[str, Any]:
        """Return everything, in JSON's terms; times are in UTC."""
        now = self._clock()
        return {
            "gateway": self._ivorn,
            "now": _iso(now),
            "started": _iso(self._started),
            "listening": [{"role": role, "address": at} for role, at in list(self._listening.items())],
            "feeds": [{"feed": name, **one.row(now)} for name, one in list(self._feeds.items())],
            "subscribers": [one.row(now) for one in list(self._subscribers.values())],
            "left": list(self._left),
            "remotes": [_remote_row(address, one, now) for address, one in list(self._remotes.items())],
            "authors": [_author_row(host, one, now) for host, one in reversed(list(self._authors.items()))],
            "refused": [
                {
                    "role": role,
                    "reason": reason,
                    "count": one.count,
                    "last_from": one.host,
                    "last": _iso(one.at),
                }
                for (role, reason), one in list(self._refused.items())
            ],
        }


def _remote_row(address: str, one: _Remote, now: float) -> dict[str, Any]:
    return {
        "address": address,
        "connected": one.connected,
        "since": _iso(one.since),
        "reason": one.reason,
        "outcomes": dict(one.outcomes),
        **one.traffic.row(now),
    }


def _author_row(host: str, one: _Author, now: float) -> dict[str, Any]:
    return {
        "address": host,
        "outcomes": dict(one.outcomes),
        "last_reason": one.reason,
        **one.traffic.row(now),
    }


def _iso(moment: float | None) -> str | None:
    if moment is None:
        return None
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
