"""Topic names, and how each topic is kept.  Pure: nothing here talks to Kafka."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from nightwire.schemas._survey import Retention, retention

VISITS = "visits"
VOEVENTS = "voevents"
FILTERS = "filters"
ACCOUNTS = "accounts"
DEAD_LETTERS = "dead-letters"
SCHEMAS = "_schemas"

MAX_MESSAGE = 4 << 20
"""Longest message on alert and event topics. [byte]  The longest real Rubin alerts have 0.3 MB."""

NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
DAY = 86_400_000  # [ms]


class NameError_(ValueError):  # noqa: N801, N818  (Python has taken the plain name)
    """A name of an owner, filter, broker, stream or survey that cannot be part of a topic."""


@dataclass(frozen=True)
class TopicSettings:
    """How a topic is made: its partitions, and its Kafka configuration."""

    name: str
    partitions: int
    config: Mapping[str, str] = field(default_factory=dict)


def check_name(name: str) -> str:
    """Return *name* if it can be part of a topic.

    Raises:
        NameError_: It cannot; the message says what can.
    """
    if NAME.fullmatch(name):
        return name
    raise NameError_(
        f"{name!r} is no name here: 1 to 32 characters, a small letter first, then small letters, digits, '-'"
    )


def alerts(survey: str) -> str:
    """Return the topic of a survey's alerts."""
    return f"alerts.{check_name(survey)}"


def filter_topic(owner: str, name: str) -> str:
    """Return the topic of what passed a filter."""
    return f"filter.{check_name(owner)}.{check_name(name)}"


def requests(owner: str) -> str:
    """Return the topic in which an owner asks for changes of filters."""
    return f"requests.{check_name(owner)}"


def answers(owner: str) -> str:
    """Return the topic of the answers to an owner's requests."""
    return f"answers.{check_name(owner)}"


def overflow(owner: str, name: str) -> str:
    """Return the topic of what passed a filter and was cut off by its cap."""
    return f"overflow.{check_name(owner)}.{check_name(name)}"


def broker_topic(broker: str, stream: str) -> str:
    """Return the topic of a stream that a community broker ordered."""
    return f"broker.{check_name(broker)}.{check_name(stream)}"


def returns(broker: str) -> str:
    """Return the topic of a community broker's own classifications."""
    return f"returns.{check_name(broker)}"


def settings(topic: str) -> TopicSettings:
    """Return how *topic* is to be made.

    Raises:
        NameError_: It is none of ours.
    """
    if topic in COMPACTED:
        return TopicSettings(topic, 1, _compacted())
    if topic == VOEVENTS:
        return TopicSettings(topic, 4, _by_time(Retention(days=60)))
    if topic == DEAD_LETTERS:
        return TopicSettings(topic, 1, _by_time(Retention(days=30)))
    kind, *names = topic.split(".")
    if len(names) != PARTS.get(kind):
        raise NameError_(
            f"{topic!r} is not a topic of ours; see nightwire.schemas.topics for those there are"
        )
    for name in names:
        check_name(name)
    if kind in ("alerts", "overflow"):
        kept = retention(names[0] if kind == "alerts" else "")
        return TopicSettings(topic, kept.partitions if kind == "alerts" else 1, _by_time(kept))
    return TopicSettings(topic, 4 if kind in ("broker", "returns") else 1, _by_time(DAYS[kind]))


COMPACTED = frozenset({VISITS, FILTERS, ACCOUNTS, SCHEMAS})
PARTS = {"alerts": 1, "filter": 2, "requests": 1, "answers": 1, "overflow": 2, "broker": 2, "returns": 1}
DAYS = {
    "filter": Retention(days=30),
    "requests": Retention(days=7),
    "answers": Retention(days=7),
    "broker": Retention(days=7),
    "returns": Retention(days=30),
}


def _compacted() -> dict[str, str]:
    # Small segments, so that compaction (which leaves the active one alone) has something to do.
    return {
        "cleanup.policy": "compact",
        "segment.bytes": str(16 << 20),
        "max.message.bytes": str(MAX_MESSAGE),
    }


def _by_time(kept: Retention) -> dict[str, str]:
    config = {
        "cleanup.policy": "delete",
        "retention.ms": str(int(kept.days * DAY)),
        "max.message.bytes": str(MAX_MESSAGE),
    }
    if kept.partition_bytes:
        config["retention.bytes"] = str(kept.partition_bytes)
        config["segment.bytes"] = str(max(1 << 20, kept.partition_bytes // 5))
    return config
