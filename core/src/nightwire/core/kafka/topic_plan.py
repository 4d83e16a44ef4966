"""The differences between the wanted and the actual topics, and an action for each.  Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from nightwire.schemas.topics import TopicSettings

OURS = (
    "cleanup.policy",
    "compression.type",
    "max.message.bytes",
    "retention.bytes",
    "retention.ms",
    "segment.bytes",
)
"""Settings that are ours to say: where we say nothing, the cluster's default is wanted."""


class Action(Enum):
    """What is done about a difference."""

    CREATE = "make"
    SET = "set"
    RESET = "back to default"
    ADD = "add"
    REFUSE = "refused"


@dataclass(frozen=True)
class TopicState:
    """How a topic is.

    Attributes:
        partitions: How many it has.
        replication: Copies of the partition that has fewest.
        config: Its settings, defaults included.
        own: Names of those that are set on the topic itself.
        has_records: Whether there are any.
    """

    partitions: int
    replication: int
    config: Mapping[str, str]
    own: frozenset[str] = frozenset()
    has_records: bool = False


@dataclass(frozen=True)
class Step:
    """One difference.

    Attributes:
        topic: Name of the topic.
        setting: What differs.
        now: What it is; empty where there is no topic.
        wanted: What it should be; empty for the cluster's default.
        action: What is done about it.
        why: Why nothing is, and what can be.
    """

    topic: str
    setting: str
    now: str
    wanted: str
    action: Action
    why: str = ""


def plan(
    wanted: Sequence[TopicSettings], now: Mapping[str, TopicState], *, break_order: bool = False
) -> list[Step]:
    """Return the differences between *wanted* and *now*, each with its action.

    Args:
        wanted: The topics as they should be.
        now: Those that there are, by name.
        break_order: Add partitions to topics with records too.
    """
    return [step for one in wanted for step in _steps(one, now.get(one.name), break_order)]


def _steps(wanted: TopicSettings, now: TopicState | None, break_order: bool) -> Iterator[Step]:
    if now is None:
        copies = wanted.replication or "default"
        yield Step(wanted.name, "topic", "", f"{wanted.partitions} partitions × {copies}", Action.CREATE)
        return
    if wanted.partitions != now.partitions:
        yield _partitions(wanted, now, break_order)
    if wanted.replication not in (None, now.replication):
        yield Step(
            wanted.name,
            "replication",
            str(now.replication),
            str(wanted.replication),
            Action.REFUSE,
            "Kafka moves copies itself: write the partitions with their brokers to a JSON file, and run "
            "kafka-reassign-partitions.sh --reassignment-json-file FILE --execute",
        )
    yield from _config(wanted, now)


def _partitions(wanted: TopicSettings, now: TopicState, break_order: bool) -> Step:
    action, why = Action.ADD, ""
    if wanted.partitions < now.partitions:
        action, why = Action.REFUSE, "Kafka cannot take partitions away: make the topic anew"
    elif now.has_records and not break_order:
        action = Action.REFUSE
        why = (
            "an object's next alerts may go to another partition than its earlier ones, and overtake them; "
            "--break-order does it all the same"
        )
    return Step(wanted.name, "partitions", str(now.partitions), str(wanted.partitions), action, why)


def _config(wanted: TopicSettings, now: TopicState) -> Iterator[Step]:
    for name, value in sorted(wanted.config.items()):
        if now.config.get(name) != value:
            yield Step(wanted.name, name, now.config.get(name, ""), value, Action.SET)
    for name in sorted(now.own.intersection(OURS).difference(wanted.config)):
        yield Step(wanted.name, name, now.config.get(name, ""), "", Action.RESET)
