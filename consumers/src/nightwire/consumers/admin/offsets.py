"""Where a group stands, and how to move it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as TopicPartitionOffset
from rich.table import Table

from nightwire.consumers.source.source import PATIENCE, partitions
from nightwire.consumers.source.start_offsets import Span, at_time
from nightwire.consumers.source.timespec import milliseconds
from nightwire.core import kafka
from nightwire.core.kafka import TopicPartition

Target = int | str | datetime | timedelta
"""An offset, ``beginning``, ``end``, a time, or how long ago."""


class GroupActiveError(Exception):
    """A group is being read with, so its position is its members' own; names them."""


@dataclass(frozen=True)
class GroupPosition:
    """Where a group stands in one partition.

    Attributes:
        spot: Topic and partition.
        committed: Offset of the record that it reads next.
        span: Offset of the oldest record, and the one after the newest.
    """

    spot: TopicPartition
    committed: int
    span: Span

    @property
    def behind(self) -> int:
        """Records that it has before it."""
        return self.span[1] - min(max(self.committed, self.span[0]), self.span[1])

    @property
    def expired(self) -> int:
        """Records that Kafka deleted before it read them."""
        return max(0, self.span[0] - self.committed)


@dataclass(frozen=True)
class GroupMember:
    """Who reads with a group."""

    name: str
    host: str
    spots: Sequence[TopicPartition]

    def __str__(self) -> str:
        return f"{self.name} at {self.host}"


@dataclass(frozen=True)
class OffsetMove:
    """A change of position; *now* is None where the group never was."""

    spot: TopicPartition
    now: int | None
    then: int


class GroupAdmin:
    """Look after a group without joining it.

    Args:
        bootstrap: ``HOST:PORT[,HOST:PORT…]``.
        group: Name of the group.
    """

    def __init__(self, bootstrap: str, group: str) -> None:
        self._group = group
        self._consumer = kafka.consumer(bootstrap, group=group)
        self._admin = kafka.admin(bootstrap)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def members(self) -> list[GroupMember]:
        """Return who reads with the group now.

        Raises:
            KafkaException: Kafka cannot be reached.
        """
        asked: Any = self._admin.describe_consumer_groups([self._group])
        try:
            described = asked[self._group].result(PATIENCE)
        except KafkaException as error:
            if error.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND:
                return []
            raise
        return [_member(one) for one in described.members]

    def positions(self, topics: Sequence[str] = ()) -> list[GroupPosition]:
        """Return where the group stands; of all topics, or of *topics*.

        Raises:
            TopicError: A topic does not exist.
            KafkaException: Kafka cannot be reached.
        """
        asked = [TopicPartitionOffset(*spot) for spot in self._spots(topics)]
        found = self._consumer.committed(asked, timeout=PATIENCE)
        kept = {(one.topic, one.partition): one.offset for one in found if one.offset >= 0}
        return [GroupPosition(spot, at, self._span(spot)) for spot, at in sorted(kept.items())]

    def plan(self, target: Target, topics: Sequence[str] = ()) -> list[OffsetMove]:
        """Return what it takes to bring the group to *target*, in *topics* or where it stands already.

        Raises:
            TopicError: A topic does not exist.
            KafkaException: Kafka cannot be reached.
        """
        stands = {one.spot: one.committed for one in self.positions(topics)}
        spans = {spot: self._span(spot) for spot in (self._spots(topics) if topics else stands)}
        then = self._targets(target, spans)
        return [OffsetMove(spot, stands.get(spot), then[spot]) for spot in sorted(spans)]

    def move(self, moves: Sequence[OffsetMove]) -> None:
        """Bring the group to where *moves* say.

        Raises:
            GroupActiveError: Somebody reads with the group.
            KafkaException: Kafka cannot be reached, or refuses.
        """
        if members := self.members():
            raise GroupActiveError(self._active(members))
        offsets = [TopicPartitionOffset(*one.spot, one.then) for one in moves]
        try:
            answers = self._consumer.commit(offsets=offsets, asynchronous=False) if offsets else []
        except KafkaException as error:
            if error.args[0].code() in JOINED:  # somebody joined since we looked
                raise GroupActiveError(self._active(self.members())) from error
            raise
        for answer in answers or ():
            if answer.error is not None:
                raise KafkaException(answer.error)

    def _active(self, members: Sequence[GroupMember]) -> str:
        return (
            f"group {self._group} is being read with, so nothing was changed: stop "
            f"{'; '.join(map(str, members))} first (a member that died, or one with a name that stopped, "
            "counts until its session ends, 10 to 45 s)"
        )

    def _spots(self, topics: Sequence[str]) -> list[TopicPartition]:
        if topics:
            return partitions(self._consumer, list(dict.fromkeys(topics)))
        known: Any = self._consumer.list_topics(timeout=PATIENCE).topics
        return [
            (name, part)
            for name, topic in known.items()
            if not name.startswith("__")
            for part in topic.partitions
        ]

    def _span(self, spot: TopicPartition) -> Span:
        return kafka.watermarks(self._consumer, *spot, patience=PATIENCE)

    def _targets(self, target: Target, spans: Mapping[TopicPartition, Span]) -> dict[TopicPartition, int]:
        if isinstance(target, datetime | timedelta):
            moment = milliseconds(target, datetime.now(UTC))
            asked = [TopicPartitionOffset(*spot, moment) for spot in spans]
            found = self._consumer.offsets_for_times(asked, timeout=PATIENCE) if asked else []
            at = {(one.topic, one.partition): one.offset for one in found}
            return {spot: at_time(at[spot], span) for spot, span in spans.items()}
        return {spot: offset_in(span, target) for spot, span in spans.items()}


JOINED = frozenset(
    {KafkaError.UNKNOWN_MEMBER_ID, KafkaError.ILLEGAL_GENERATION, KafkaError.REBALANCE_IN_PROGRESS}
)
"""What a broker answers who commits for a group that has members."""


def offset_in(span: Span, target: int | str) -> int:
    """Return the offset in a partition that *target* means: never outside what it holds."""
    if isinstance(target, str):
        return span[0] if target == "beginning" else span[1]
    return min(max(target, span[0]), span[1])


def _member(described: Any) -> GroupMember:
    given = described.assignment.topic_partitions if described.assignment else ()
    return GroupMember(
        name=described.group_instance_id or described.client_id,
        host=described.host.lstrip("/"),
        spots=[(one.topic, one.partition) for one in given],
    )


def as_record(
    group: str, positions: Sequence[GroupPosition], members: Sequence[GroupMember]
) -> dict[str, Any]:
    """Return what JSON has of a group."""
    return {
        "group": group,
        "positions": [
            {
                "topic": one.spot[0],
                "partition": one.spot[1],
                "committed": one.committed,
                "oldest": one.span[0],
                "end": one.span[1],
                "behind": one.behind,
                "expired": one.expired,
            }
            for one in positions
        ],
        "members": [
            {"name": one.name, "host": one.host, "partitions": [list(spot) for spot in one.spots]}
            for one in members
        ],
    }


def table(positions: Sequence[GroupPosition], members: Sequence[GroupMember]) -> Table:
    """Return a row a partition, with who reads it."""
    owners = {spot: str(one) for one in members for spot in one.spots}
    rows = Table(box=None, pad_edge=False, header_style="bold")
    rows.add_column("topic", overflow="fold")
    for name in ("partition", "committed", "oldest", "end", "behind", "expired"):
        rows.add_column(name, justify="right")
    rows.add_column("read by", overflow="fold")
    for one in positions:
        numbers = (one.committed, *one.span, one.behind, one.expired)
        cells = (f"{number:,}" if number else "·" for number in numbers)
        rows.add_row(one.spot[0], str(one.spot[1]), *cells, owners.get(one.spot, ""))
    return rows


def move_line(move: OffsetMove) -> str:
    """Return a change in one line."""
    topic, partition = move.spot
    now = "nowhere" if move.now is None else str(move.now)
    return f"{topic}[{partition}]: {now} -> {move.then}"
