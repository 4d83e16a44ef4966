"""Topic names, and how each topic is kept.  Pure: nothing here talks to Kafka."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from nightwire.schemas.errors import SchemaError
from nightwire.schemas.retention import Changes as Changes
from nightwire.schemas.retention import Retention, configured_changes, with_changes
from nightwire.schemas.retention import read_changes as read_changes
from nightwire.schemas.survey_model.description import STREAMS, retention

VISITS = "visits"
VOEVENTS = "voevents"
FILTERS = "filters"
ACCOUNTS = "accounts"
DEAD_LETTERS = "dead-letters"
SCHEMAS = "_schemas"
VTP_POSITIONS = "vtp-positions"
DIRECTORY = "directory"
SUBSCRIPTIONS = "subscriptions"
CHANNELS = "channels"
FLOWS = "flows"
FLOW_PROBLEMS = "flow-problems"
OWED = "owed"

MAX_MESSAGE = 4 << 20
"""Longest message on alert and event topics. [byte]  The longest real Rubin alerts have 0.3 MB."""

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,35}")
"""A name that can be part of a topic; the subjects of tokens are often UUIDs."""
DAY = 86_400_000  # [ms]


class NameError_(ValueError):  # noqa: N801, N818  (Python has taken the plain name)
    """A name of an owner, filter, broker, stream or survey that cannot be part of a topic."""


@dataclass(frozen=True)
class TopicSettings:
    """How a topic is made.

    Attributes:
        name: Its name.
        partitions: How many.
        config: Its Kafka configuration.
        replication: Copies of each partition; None = the cluster's default.
        format: What lies in it, where it is a survey's: ``wire``, or ``container`` with hop's
            headers.
    """

    name: str
    partitions: int
    config: Mapping[str, str] = field(default_factory=dict)
    replication: int | None = None
    format: str = "wire"


def check_name(name: str) -> str:
    """Return *name* if it can be part of a topic.

    Raises:
        NameError_: It cannot; the message says what can.
    """
    if NAME.fullmatch(name):
        return name
    raise NameError_(
        f"{name[:64]!r} is no name here: 1 to 36 characters, small letters, digits, and '-' but first"
    )


def alerts(survey: str) -> str:
    """Return the topic of a survey's alerts."""
    return f"alerts.{check_name(survey)}"


def records_topic(survey: str) -> str:
    """Return the topic of a survey's alerts, or of the stream that is described by that name."""
    return survey if survey in STREAMS else alerts(survey)


def named_survey(topic: str) -> str | None:
    """Return the survey, or described stream, that the name of *topic* says; None for no such."""
    kind, _, name = topic.partition(".")
    return name if kind == "alerts" and name else topic if topic in STREAMS else None


def filter_topic(owner: str, name: str) -> str:
    """Return the topic of what passed a filter."""
    return f"filter.{check_name(owner)}.{check_name(name)}"


def requests(owner: str) -> str:
    """Return the topic in which an owner asks for changes of filters."""
    return f"requests.{check_name(owner)}"


def answers(owner: str) -> str:
    """Return the topic of the answers to an owner's requests."""
    return f"answers.{check_name(owner)}"


def seen(owner: str) -> str:
    """Return the topic of what the filter engine saw of an owner's filters."""
    return f"seen.{check_name(owner)}"


def comments(owner: str) -> str:
    """Return the topic of the comments that an owner wrote, on whatever it is."""
    return f"comments.{check_name(owner)}"


def overflow(owner: str, name: str) -> str:
    """Return the topic of what passed a filter and was cut off by its cap."""
    return f"overflow.{check_name(owner)}.{check_name(name)}"


def broker_topic(broker: str, stream: str) -> str:
    """Return the topic of a stream that a community broker ordered."""
    return f"broker.{check_name(broker)}.{check_name(stream)}"


def returns(broker: str) -> str:
    """Return the topic of a community broker's own classifications."""
    return f"returns.{check_name(broker)}"


def multicast(topic: str) -> str:
    """Return the topic that says on which multicast groups *topic* is, and how these are signed."""
    return f"multicast.{topic}"


def channel(topic: str, name: str) -> str:
    """Return the topic to which sources copy the events of channel *name* of *topic*."""
    return f"channel.{check_name(topic.rpartition('.')[2])}.{check_name(name)}"


def flow_queue(flow: str, stone: str) -> str:
    """Return the topic in which events wait for a stone that runs apart from those before it."""
    return f"flow.{check_name(flow)}.{check_name(stone)}"


def flow_state(flow: str) -> str:
    """Return the topic that keeps what windows hold; its subject has the flow's schemas."""
    return f"flow-state.{check_name(flow)}"


def settings(topic: str, changes: Changes | None = None) -> TopicSettings:
    """Return how *topic* is to be made.

    Args:
        topic: Its name.
        changes: What differs from the default; else what the file that ``NIGHTWIRE_TOPICS`` names
            says.

    Raises:
        NameError_: It is none of ours.
        SchemaError: The changes ask for what cannot be.
    """
    table = (configured_changes() if changes is None else changes).get(topic, {})
    if topic in COMPACTED or _keeps_latest(topic):
        return _compacted(topic, table)
    kept = with_changes(_default(topic), table, topic)
    if kept.format != "wire" and not topic.startswith("alerts."):
        raise SchemaError(f"{topic}: only a survey's alerts have a format")
    config = _retention_config(kept)
    if topic.startswith("flow-state."):
        config["cleanup.policy"] = "compact,delete"
    return TopicSettings(topic, kept.partitions, config, kept.replication, kept.format)


def _default(topic: str) -> Retention:
    if topic in SHARED_TOPICS:
        return SHARED_TOPICS[topic]
    kind, *names = topic.split(".")
    if len(names) != NAME_PARTS.get(kind):
        raise NameError_(
            f"{topic!r} is not a topic of ours; see nightwire.schemas.topics for those there are"
        )
    for name in names:
        check_name(name)
    if kind == "alerts":
        return retention(names[0])
    return RETENTION_BY_KIND[kind]


def _keeps_latest(topic: str) -> bool:
    kind, _, owner = topic.partition(".")
    owned = kind in ("seen", "comments") and NAME.fullmatch(owner) is not None
    return owned or (kind == "multicast" and owner != "")


COMPACTED = frozenset(
    {
        VISITS,
        FILTERS,
        ACCOUNTS,
        SCHEMAS,
        VTP_POSITIONS,
        DIRECTORY,
        SUBSCRIPTIONS,
        CHANNELS,
        FLOWS,
        FLOW_PROBLEMS,
        OWED,
    }
)
NAME_PARTS = {
    "alerts": 1,
    "filter": 2,
    "requests": 1,
    "answers": 1,
    "overflow": 2,
    "broker": 2,
    "returns": 1,
    "channel": 2,
    "flow": 2,
    "flow-state": 1,
}
SHARED_TOPICS = {VOEVENTS: Retention(days=60), DEAD_LETTERS: Retention(days=30, partitions=1)}
RETENTION_BY_KIND = {
    "filter": Retention(days=30, partitions=1),
    "requests": Retention(days=7, partitions=1),
    "answers": Retention(days=7, partitions=1),
    "overflow": Retention(partitions=1),
    "broker": Retention(days=7),
    "returns": Retention(days=30),
    "channel": Retention(days=1),
    "flow": Retention(days=7, partitions=1),
    "flow-state": Retention(days=7, partitions=1),
}


def _compacted(topic: str, table: Mapping[str, object]) -> TopicSettings:
    unknown = sorted(set(table) - {"replication", "compression"})
    if unknown:
        raise SchemaError(
            f"{topic}: {unknown[0]} cannot be set: it keeps the last record of each key, in one partition"
        )
    kept = with_changes(Retention(), table, topic)
    config = {
        # Small segments, so that compaction (which leaves the active one alone) has something to
        # do.
        "cleanup.policy": "compact",
        "segment.bytes": str((1 if _keeps_latest(topic) else 16) << 20),
        "max.message.bytes": str(MAX_MESSAGE),
    }
    if topic == DIRECTORY:  # who is alive is told by Kafka's clock: those of processes may be wrong
        config["message.timestamp.type"] = "LogAppendTime"
    if topic == OWED:  # a group that was gone for so long has no position, and is owed nothing
        config |= {"cleanup.policy": "compact,delete", "retention.ms": str(90 * DAY)}
    if topic == FLOW_PROBLEMS:  # of a worker that was killed: others say again what stands
        config |= {"cleanup.policy": "compact,delete", "retention.ms": str(DAY), "segment.ms": str(DAY)}
    if kept.compression:
        config["compression.type"] = kept.compression
    return TopicSettings(topic, 1, config, kept.replication)


def _retention_config(kept: Retention) -> dict[str, str]:
    config = {
        "cleanup.policy": "delete",
        "retention.ms": str(int(kept.days * DAY)),
        "max.message.bytes": str(MAX_MESSAGE),
    }
    if kept.partition_bytes:
        config["retention.bytes"] = str(kept.partition_bytes)
        config["segment.bytes"] = str(max(1 << 20, kept.partition_bytes // 5))
    if kept.compression:
        config["compression.type"] = kept.compression
    return config
