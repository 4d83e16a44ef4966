"""Records out of Kafka for one member of a group, which goes on where it was.

Members share by cooperative rebalancing: who joins or leaves stops nobody, and each keeps the partitions
that it keeps.  So partitions come and go one by one, and what is handed out but not done when its partition
goes is not this member's to commit.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.consumers.source.plan import Plan
from nightwire.consumers.source.source import PATIENCE, RecordSource, partitions, spot_of
from nightwire.consumers.source.start_offsets import resume
from nightwire.core.kafka import TopicPartition

log = logging.getLogger("nightwire.consumers")

SESSION_TIMEOUT = 10_000
"""After a crash, how long the group waits for the dead member. [ms]  Kafka's default is 45,000."""

ABSENCE = 45_000
"""How long a member with a name may be away before others get its partitions. [ms]"""

ADVICE = {
    KafkaError._FATAL: "Kafka has ended this membership ({error}): does another process read as member "
    "{member!r} of group {group!r}?  Give each its own name",
    KafkaError.INCONSISTENT_GROUP_PROTOCOL: "the members of group {group!r} that run now share by another "
    "protocol than cooperative-sticky: stop them first",
}
"""What to do about errors that end a membership."""


class GroupError(Exception):
    """A group does not take this member; the message says what to do."""


def membership(member: str | None, asked: Mapping[str, str]) -> dict[str, Any]:
    """Return the properties of a member of a group, where ``KAFKA_*`` does not say otherwise.

    The classic protocol, since there the client says how soon it is taken for dead; the one of KIP-848
    (``KAFKA_GROUP_PROTOCOL=consumer``) leaves that to the broker, whose least is 45 s.

    Args:
        member: Name of the member that is kept over restarts; None for one that comes and goes.
        asked: Properties from the environment.
    """
    static: dict[str, Any] = {"group_instance_id": member} if member else {}
    if asked.get("group.protocol") == "consumer":
        return static
    session = {"session_timeout_ms": ABSENCE if member else SESSION_TIMEOUT}
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
        plan: What to read, and from where a group begins that never was here.
        commit_interval: Time between commits. [s]
    """

    def __init__(self, consumer: Consumer, plan: Plan, *, commit_interval: float = 1.0) -> None:
        super().__init__(consumer, plan)
        self._interval = commit_interval
        self._begun: dict[TopicPartition, int] = {}  # where each partition of ours began
        self._done: dict[TopicPartition, int] = {}
        self._news = False  # whether more is done than was committed
        self._joined = False
        self._failure: KafkaException | None = None  # of a rebalance; the next call raises it
        self._committed_at = time.monotonic()

    def open(self) -> None:
        """Join the group.

        Raises:
            TopicError: A topic does not exist.
            KafkaException: Kafka cannot be reached.
        """
        partitions(self._consumer, self._plan.topics)
        self._consumer.subscribe(
            list(self._plan.topics),
            on_assign=self._kept_back(self._assigned),
            on_revoke=self._revoked,
            on_lost=self._robbed,
        )

    def take(self, most: int, timeout: float) -> list[Message]:
        """Return the next records: up to *most* of those that are there, else what comes first.

        Empty when none came within *timeout* [s], or before the end.

        Raises:
            GroupError: The group does not take this member.
            KafkaException: Reading cannot go on.
        """
        if self._news and time.monotonic() - self._committed_at >= self._interval:
            self._committed_at, self._news = time.monotonic(), False
            self._consumer.commit(offsets=self._positions(), asynchronous=True)
        try:
            return self._sound(super().take(most, timeout))
        except KafkaException as error:
            if advice := ADVICE.get(error.args[0].code()):
                plan, why = self._plan, error.args[0].str()
                raise GroupError(advice.format(member=plan.member, group=plan.group, error=why)) from error
            raise

    @property
    def at_end(self) -> bool:
        """Whether all has been read that was there when this member got its partitions."""
        return self._joined and super().at_end

    def done(self, marks: Mapping[TopicPartition, int]) -> None:
        """Say that the caller has finished with what lies before these offsets.

        What lies in partitions that went to others meanwhile is theirs to commit.
        """
        ours = {spot: at for spot, at in marks.items() if at > self._begun.get(spot, at)}
        self._done |= ours
        self._news = self._news or bool(ours)

    def commit(self) -> None:
        """Keep the position of what is done, and wait until Kafka has it."""
        if self._done and self._keep(self._positions()):
            self._news = False

    def close(self) -> None:
        """Leave the group; the others take over at once, from a member with a name when it stays away."""
        self.commit()
        self._done.clear()
        self._consumer.close()

    def _keep(self, positions: list[TopicPartitionOffset]) -> bool:
        try:
            self._consumer.commit(offsets=positions, asynchronous=False)
        except KafkaException as error:
            log.warning("position not kept, some alerts will come again: %s", error.args[0].str())
            return False
        return True

    def _sound(self, taken: list[Message]) -> list[Message]:
        if self._failure is not None:
            raise self._failure
        return taken

    def _kept_back(self, react: Rebalance) -> Rebalance:
        """Return *react* with its errors kept for the next call.

        confluent-kafka raises what escapes from a callback as something that is no exception.
        """

        def reacting(consumer: Consumer, partitions: list[TopicPartitionOffset]) -> None:
            try:
                react(consumer, partitions)
            except KafkaException as error:
                self._failure = error

        return reacting

    def _positions(self) -> list[TopicPartitionOffset]:
        return [TopicPartitionOffset(*spot, offset) for spot, offset in self._done.items()]

    def _assigned(self, consumer: Consumer, given: list[TopicPartitionOffset]) -> None:
        spots = [(one.topic, one.partition) for one in given]
        spans = self.spans(spots)
        fresh = self.fresh(spans)
        kept = {(one.topic, one.partition): one.offset for one in self._kept(consumer, given)}
        starts = {
            spot: resume(kept[spot] if kept[spot] >= 0 else None, spans[spot], fresh[spot]) for spot in spots
        }
        self._begun |= {spot: start.offset for spot, start in starts.items()}
        self.assign(starts, spans)
        self._joined = True
        log.info(
            "given %s",
            ", ".join(f"{topic}[{partition}]" for topic, partition in sorted(spots)) or "no partition",
        )
        if new := [TopicPartitionOffset(*spot, starts[spot].offset) for spot in spots if kept[spot] < 0]:
            self._keep(new)  # where "live" was, should this process die now

    def _kept(self, consumer: Consumer, given: list[TopicPartitionOffset]) -> list[TopicPartitionOffset]:
        return list(consumer.committed(given, timeout=PATIENCE)) if given else []

    def _revoked(self, _consumer: Consumer, taken: list[TopicPartitionOffset]) -> None:
        self.commit()
        self._forget(taken)

    def _robbed(self, _consumer: Consumer, taken: list[TopicPartitionOffset]) -> None:
        log.warning("the group has given up this member for a while: some alerts will come again")
        self._forget(taken)

    def _forget(self, taken: list[TopicPartitionOffset]) -> None:
        gone = {(one.topic, one.partition) for one in taken}
        for kept in (self._begun, self._done, self._ends, self._limits, self._next):
            for spot in gone:
                kept.pop(spot, None)
        self._backlog = deque(message for message in self._backlog if spot_of(message)[0] not in gone)
