"""Records out of Kafka for one member of a group, which goes on where it was."""

import logging
import time

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from nightwire.consumers._plan import Plan
from nightwire.consumers._positions import Spot, resume
from nightwire.consumers._source import PATIENCE, Source, partitions

log = logging.getLogger("nightwire.consumers")


class GroupSource(Source):
    """Records of a group: its members share the partitions, and commit what is done.

    Args:
        consumer: Has ``enable.partition.eof`` set, and a group.
        plan: What to read, and from where a group begins that never was here.
        commit_interval: Time between commits. [s]
    """

    def __init__(self, consumer: Consumer, plan: Plan, *, commit_interval: float = 1.0) -> None:
        super().__init__(consumer, plan)
        self._interval = commit_interval
        self._done: dict[Spot, int] = {}
        self._joined = False
        self._committed_at = time.monotonic()

    def open(self) -> None:
        """Join the group.

        Raises:
            TopicError: A topic does not exist.
            KafkaException: Kafka cannot be reached.
        """
        partitions(self._consumer, self._plan.topics)
        self._consumer.subscribe(
            list(self._plan.topics), on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._robbed
        )

    def poll(self, timeout: float) -> Message | None:
        """Return the next record, or None when none came within *timeout* [s] or before the end.

        Raises:
            KafkaException: Reading cannot go on.
        """
        if self._done and time.monotonic() - self._committed_at >= self._interval:
            self._committed_at = time.monotonic()
            self._consumer.commit(offsets=self._positions(), asynchronous=True)
        return super().poll(timeout)

    @property
    def at_end(self) -> bool:
        """Whether all has been read that was there when this member got its partitions."""
        return self._joined and super().at_end

    def done(self, message: Message) -> None:
        """Say that the caller has finished with *message*: the group need not see it again."""
        self._done[str(message.topic()), message.partition() or 0] = (message.offset() or 0) + 1

    def commit(self) -> None:
        """Keep the position of what is done, and wait until Kafka has it."""
        if not self._done:
            return
        try:
            self._consumer.commit(offsets=self._positions(), asynchronous=False)
        except KafkaException as error:
            log.warning("position not kept, some alerts will come again: %s", error.args[0].str())

    def close(self) -> None:
        """Leave the group; the others take over at once."""
        self.commit()
        self._done.clear()
        self._consumer.close()

    def _positions(self) -> list[TopicPartition]:
        return [TopicPartition(*spot, offset) for spot, offset in self._done.items()]

    def _assigned(self, consumer: Consumer, given: list[TopicPartition]) -> None:
        spots = [(one.topic, one.partition) for one in given]
        spans = self.spans(spots)
        fresh = self.fresh(spans)
        kept = {(one.topic, one.partition): one.offset for one in self._kept(consumer, given)}
        starts = {
            spot: resume(kept[spot] if kept[spot] >= 0 else None, spans[spot], fresh[spot]) for spot in spots
        }
        self.assign(starts, spans)
        self._joined = True
        log.info(
            "given %s", ", ".join(f"{topic}[{partition}]" for topic, partition in spots) or "no partition"
        )
        if new := [TopicPartition(*spot, starts[spot].offset) for spot in spots if kept[spot] < 0]:
            consumer.commit(offsets=new, asynchronous=False)  # where "live" was, should this process die now

    def _kept(self, consumer: Consumer, given: list[TopicPartition]) -> list[TopicPartition]:
        return list(consumer.committed(given, timeout=PATIENCE)) if given else []

    def _revoked(self, _consumer: Consumer, taken: list[TopicPartition]) -> None:
        self.commit()
        self._forget(taken)

    def _robbed(self, _consumer: Consumer, taken: list[TopicPartition]) -> None:
        log.warning("the group has given up this member for a while: some alerts will come again")
        self._forget(taken)

    def _forget(self, taken: list[TopicPartition]) -> None:
        for one in taken:
            for kept in (self._done, self._ends, self._limits, self._next):
                kept.pop((one.topic, one.partition), None)
