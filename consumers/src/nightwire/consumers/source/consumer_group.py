"""Records out of Kafka for one member of a group, which goes on where it was.

Members share by cooperative rebalancing: a member that joins or leaves stops nobody, and the others
keep most of their partitions.  So partitions come and go one by one, and what is handed out but not
done when its partition goes is not this member's to commit.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.consumers.source.plan import Plan
from nightwire.consumers.source.record_source import OFFSET_TIMEOUT, RecordSource, partitions_of, position_of
from nightwire.consumers.source.start_offsets import resume
from nightwire.core.kafka import TopicPartition, error_code, error_text
from nightwire.schemas import MendableError

log = logging.getLogger("nightwire.consumers")

SESSION_TIMEOUT = 10_000
"""After a crash, how long the group waits for the dead member. [ms]  Kafka's default is 45,000."""

STATIC_MEMBER_TIMEOUT = 45_000
"""How long a member with a name may be away before others get its partitions. [ms]"""

ERROR_ADVICE = {
    KafkaError._FATAL: "Kafka has ended this membership ({error}): does another process read as member "
    "{member!r} of group {group!r}?  Give each its own name",
    KafkaError.INCONSISTENT_GROUP_PROTOCOL: "the members of group {group!r} that run now share by another "
    "protocol than cooperative-sticky: stop them first",
}
"""What to do about errors that end a membership."""


class GroupError(MendableError):
    """A group does not take this member; the message says what to do."""


def membership(member: str | None, asked: Mapping[str, str]) -> dict[str, Any]:
    """Return the properties of a member of a group, where ``KAFKA_*`` does not say otherwise.

    The classic protocol, since there the client says how soon it is taken for dead; the one of
    KIP-848 (``KAFKA_GROUP_PROTOCOL=consumer``) leaves that to the broker, whose least is 45 s.

    Args:
        member: Name of the member that is kept over restarts; None for one that comes and goes.
        asked: Properties from the environment.
    """
    static: dict[str, Any] = {"group_instance_id": member} if member else {}
    if asked.get("group.protocol") == "consumer":
        return static
    session = {"session_timeout_ms": STATIC_MEMBER_TIMEOUT if member else SESSION_TIMEOUT}
    return (
        static
        | ({} if "session.timeout.ms" in asked else session)
        | {"partition_assignment_strategy": "cooperative-sticky"}
    )


Rebalance = Callable[[Consumer, list[TopicPartitionOffset]], None]


class GroupSource(RecordSource):
    """Records of a group: its members share the partitions, and commit what is done.

    Args:
        consumer: Has ``enable.partition.eof`` set, and a group.
        plan: What to read, and from where a group begins that has no position.
        commit_interval: Time between commits. [s]
    """

    def __init__(self, consumer: Consumer, plan: Plan, *, commit_interval: float = 1.0) -> None:
        super().__init__(consumer, plan)
        self._interval = commit_interval
        self._begun: dict[TopicPartition, int] = {}  # where each partition of ours began
        self._done: dict[TopicPartition, int] = {}
        self._uncommitted = False  # whether more is done than was committed
        self._joined = False
        self._rebalance_failure: KafkaException | None = None  # the next call raises it
        self._committed_at = time.monotonic()

    def open(self) -> None:
        """Join the group.

        Raises:
            TopicError: A topic does not exist.
            KafkaException: Kafka cannot be reached.
        """
        partitions_of(self._consumer, self._plan.topics)
        self.subscribe(self._plan.topics)

    def subscribe(self, topics: Sequence[str]) -> None:
        """Share *topics* with the other members from now on, and no others."""
        self._consumer.subscribe(
            list(topics),
            on_assign=self._keeping_failure(self._on_assign),
            on_revoke=self._on_revoke,
            on_lost=self._on_lost,
        )

    def take(self, most: int, timeout: float) -> list[Message]:
        """Return the next records: up to *most* of those that are there, else what comes first.

        Empty when none came within *timeout* [s], or before the end.

        Raises:
            GroupError: The group does not take this member.
            KafkaException: Reading cannot go on.
        """
        if self._uncommitted and time.monotonic() - self._committed_at >= self._interval:
            self._committed_at, self._uncommitted = time.monotonic(), False
            self._consumer.commit(offsets=self._positions(), asynchronous=True)
        try:
            messages = super().take(most, timeout)
            if self._rebalance_failure is not None:
                raise self._rebalance_failure.with_traceback(None)
        except KafkaException as error:
            if advice := ERROR_ADVICE.get(error_code(error)):
                plan, why = self._plan, error_text(error)
                raise GroupError(advice.format(member=plan.member, group=plan.group, error=why)) from error
            raise
        return messages

    @property
    def at_end(self) -> bool:
        """Whether all has been read that was there when this member got its partitions."""
        return self._joined and super().at_end

    def mark_done(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Note that the caller has finished with what lies before these *offsets*.

        What lies in partitions that went to others meanwhile is theirs to commit.
        """
        ours = {
            partition: offset
            for partition, offset in offsets.items()
            if offset > self._begun.get(partition, offset)
        }
        self._done |= ours
        self._uncommitted = self._uncommitted or bool(ours)

    def commit(self) -> None:
        """Commit what is done, and wait until Kafka has it."""
        if self._done and self._commit(self._positions()):
            self._uncommitted = False

    def close(self) -> None:
        """Leave the group; the others take over, from a member with a name when it stays away."""
        self.commit()
        self._done.clear()
        self._consumer.close()

    def _commit(self, positions: list[TopicPartitionOffset]) -> bool:
        try:
            self._consumer.commit(offsets=positions, asynchronous=False)
        except KafkaException as error:
            log.warning("position not committed, some alerts will come again: %s", error_text(error))
            return False
        return True

    def _keeping_failure(self, callback: Rebalance) -> Rebalance:
        """Return *callback* with its errors kept for the next call.

        confluent-kafka raises what escapes from a callback as something that is no exception.
        """

        def guarded(consumer: Consumer, partitions: list[TopicPartitionOffset]) -> None:
            try:
                callback(consumer, partitions)
            except KafkaException as error:
                self._rebalance_failure = error

        return guarded

    def _positions(self) -> list[TopicPartitionOffset]:
        return [TopicPartitionOffset(*partition, offset) for partition, offset in self._done.items()]

    def _on_assign(self, consumer: Consumer, given: list[TopicPartitionOffset]) -> None:
        partitions = [(one.topic, one.partition) for one in given]
        held = self.watermarks(partitions)
        initial = self.initial_offsets(held)
        committed = self._committed_offsets(consumer, given)
        starts = {one: resume(committed.get(one), held[one], initial[one]) for one in partitions}
        self._begun |= {partition: start.offset for partition, start in starts.items()}
        self.assign(starts, {partition: marks.high for partition, marks in held.items()})
        self._joined = True
        names = ", ".join(f"{topic}[{number}]" for topic, number in sorted(partitions))
        log.info("given %s", names or "no partition")
        if new := [
            TopicPartitionOffset(*one, starts[one].offset) for one in partitions if one not in committed
        ]:
            self._commit(new)  # where "live" was, should this process die now

    def _committed_offsets(
        self, consumer: Consumer, given: list[TopicPartitionOffset]
    ) -> dict[TopicPartition, int]:
        found = consumer.committed(given, timeout=OFFSET_TIMEOUT) if given else []
        return {(one.topic, one.partition): one.offset for one in found if one.offset >= 0}

    def _on_revoke(self, _consumer: Consumer, taken: list[TopicPartitionOffset]) -> None:
        self.commit()
        self._forget(taken)

    def _on_lost(self, _consumer: Consumer, taken: list[TopicPartitionOffset]) -> None:
        log.warning("the group has given up this member for a while: some alerts will come again")
        self._forget(taken)

    def _forget(self, taken: list[TopicPartitionOffset]) -> None:
        gone = {(one.topic, one.partition) for one in taken}
        for offsets in (self._begun, self._done, self._ends, self._limits, self._next):
            for partition in gone:
                offsets.pop(partition, None)
        self._backlog = deque(message for message in self._backlog if position_of(message)[0] not in gone)
