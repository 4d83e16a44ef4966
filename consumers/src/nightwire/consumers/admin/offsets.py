"""Positions of a consumer group: looked at, and moved, without joining the group."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.consumers.source import OFFSET_TIMEOUT, at_time, milliseconds, partitions_of
from nightwire.core import kafka
from nightwire.core.cli import Cell, Column, Listing
from nightwire.core.kafka import TopicPartition, Watermarks, error_code
from nightwire.schemas import MendableError

Target = int | str | datetime | timedelta
"""An offset, ``beginning``, ``end``, a time, or how long ago."""

GROUP_IS_ACTIVE = frozenset(
    {KafkaError.UNKNOWN_MEMBER_ID, KafkaError.REBALANCE_IN_PROGRESS, KafkaError.ILLEGAL_GENERATION}
)
"""What Kafka answers to a commit from outside, while the group has members."""


class GroupActiveError(MendableError):
    """A group has members, so its positions are theirs; the message names them."""


@dataclass(frozen=True)
class GroupPosition:
    """How far a group has read one partition.

    Attributes:
        partition: Topic and partition.
        committed: Offset of the record that the group reads next.
        held: What Kafka has of the partition.
    """

    partition: TopicPartition
    committed: int
    held: Watermarks

    @property
    def behind(self) -> int:
        """How many records the group has still to read."""
        return self.held.high - min(max(self.committed, self.held.low), self.held.high)

    @property
    def expired(self) -> int:
        """How many records Kafka deleted before the group read them."""
        return max(0, self.held.low - self.committed)


@dataclass(frozen=True)
class GroupMember:
    """A process that reads with a group."""

    name: str
    host: str
    partitions: Sequence[TopicPartition]

    def __str__(self) -> str:
        return f"{self.name} at {self.host}"


@dataclass(frozen=True)
class OffsetMove:
    """A change of a group's position; *before* is None where the group has none yet."""

    partition: TopicPartition
    before: int | None
    after: int

    def __str__(self) -> str:
        topic, number = self.partition
        return f"{topic}[{number}]: {'nowhere' if self.before is None else self.before} -> {self.after}"


class GroupAdmin:
    """Looks after a group without joining it.

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
            described = asked[self._group].result(OFFSET_TIMEOUT)
        except KafkaException as error:
            if error_code(error) == KafkaError.GROUP_ID_NOT_FOUND:
                return []
            raise
        return [_member(one) for one in described.members]

    def positions(self, topics: Sequence[str] = ()) -> list[GroupPosition]:
        """Return how far the group has read; in all topics, or in *topics*.

        Raises:
            TopicError: A topic does not exist.
            KafkaException: Kafka cannot be reached.
        """
        asked = [TopicPartitionOffset(*partition) for partition in self._partitions(topics)]
        found = self._consumer.committed(asked, timeout=OFFSET_TIMEOUT)
        committed = {(one.topic, one.partition): one.offset for one in found if one.offset >= 0}
        return [
            GroupPosition(partition, offset, self._held(partition))
            for partition, offset in sorted(committed.items())
        ]

    def plan(self, target: Target, topics: Sequence[str] = ()) -> list[OffsetMove]:
        """Return the moves that bring the group to *target*, in *topics* or where it has positions.

        Raises:
            TopicError: A topic does not exist.
            KafkaException: Kafka cannot be reached.
        """
        before = {one.partition: one.committed for one in self.positions(topics)}
        wanted = self._partitions(topics) if topics else before
        held = {partition: self._held(partition) for partition in wanted}
        after = self._targets(target, held)
        return [OffsetMove(partition, before.get(partition), after[partition]) for partition in sorted(held)]

    def move(self, moves: Sequence[OffsetMove]) -> None:
        """Carry out *moves*.

        Raises:
            GroupActiveError: Somebody reads with the group.
            KafkaException: Kafka cannot be reached, or refuses.
        """
        if members := self.members():
            raise GroupActiveError(self._active(members))
        offsets = [TopicPartitionOffset(*one.partition, one.after) for one in moves]
        try:
            answers = self._consumer.commit(offsets=offsets, asynchronous=False) if offsets else []
        except KafkaException as error:
            if error_code(error) in GROUP_IS_ACTIVE:  # somebody joined since we looked
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

    def _partitions(self, topics: Sequence[str]) -> list[TopicPartition]:
        if topics:
            return partitions_of(self._consumer, list(dict.fromkeys(topics)))
        known: Any = self._consumer.list_topics(timeout=OFFSET_TIMEOUT).topics
        return [
            (name, number)
            for name, topic in known.items()
            if not name.startswith("__")
            for number in topic.partitions
        ]

    def _held(self, partition: TopicPartition) -> Watermarks:
        return kafka.watermarks(self._consumer, *partition, patience=OFFSET_TIMEOUT)

    def _targets(
        self, target: Target, held: Mapping[TopicPartition, Watermarks]
    ) -> dict[TopicPartition, int]:
        if isinstance(target, datetime | timedelta):
            time = milliseconds(target, datetime.now(UTC))
            asked = [TopicPartitionOffset(*partition, time) for partition in held]
            answers = self._consumer.offsets_for_times(asked, timeout=OFFSET_TIMEOUT) if asked else []
            found = {(one.topic, one.partition): one.offset for one in answers}
            return {partition: at_time(found[partition], offsets) for partition, offsets in held.items()}
        return {partition: offset_in(offsets, target) for partition, offsets in held.items()}


def offset_in(held: Watermarks, target: int | str) -> int:
    """Return the offset in a partition that *target* means: never outside what it holds."""
    if isinstance(target, str):
        return held.low if target == "beginning" else held.high
    return min(max(target, held.low), held.high)


def _member(described: Any) -> GroupMember:
    given = described.assignment.topic_partitions if described.assignment else ()
    return GroupMember(
        name=described.group_instance_id or described.client_id,
        host=described.host.lstrip("/"),
        partitions=[(one.topic, one.partition) for one in given],
    )


def group_record(
    group: str, positions: Sequence[GroupPosition], members: Sequence[GroupMember]
) -> dict[str, Any]:
    """Return what JSON has of a group."""
    return {
        "group": group,
        "positions": [
            {
                "topic": one.partition[0],
                "partition": one.partition[1],
                "committed": one.committed,
                "oldest": one.held.low,
                "end": one.held.high,
                "behind": one.behind,
                "expired": one.expired,
            }
            for one in positions
        ],
        "members": [
            {"name": one.name, "host": one.host, "partitions": [list(each) for each in one.partitions]}
            for one in members
        ],
    }


GROUP_COLUMNS = (
    Column("topic"),
    Column("partition", 1, number=True),
    Column("committed", 3, number=True),
    Column("oldest", 6, number=True),
    Column("end", 4, number=True),
    Column("behind", 2, number=True),
    Column("expired", 7, number=True),
    Column("read by", 5, max_width=20),
)


def group_table(
    positions: Sequence[GroupPosition], members: Sequence[GroupMember], *, wide: bool = False
) -> Listing:
    """Return a row a partition, with who reads it."""
    owners = {partition: str(one) for one in members for partition in one.partitions}
    rows: list[list[Cell]] = []
    for one in positions:
        topic, number = one.partition
        counts = (one.committed, *one.held, one.behind, one.expired)
        rows.append([topic, str(number), *counts, owners.get(one.partition, "")])
    return Listing(GROUP_COLUMNS, rows, wide)
