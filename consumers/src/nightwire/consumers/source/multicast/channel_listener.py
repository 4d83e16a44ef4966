"""What a reader with a condition receives: the topic of a channel that covers it."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.consumers.source.multicast.covering import covering
from nightwire.consumers.source.multicast.reorder_buffer import ReorderBuffer
from nightwire.core.channels import (
    HEADER,
    ChannelMapping,
    ChannelTable,
    CoverageError,
    coverage_of,
    number_of,
)
from nightwire.core.kafka import TopicPartition, consumer
from nightwire.schemas.topics import CHANNELS, channel

AT_ONCE = 512
"""Most records that are taken at once."""
PATIENCE, TICK, END_TIMEOUT = 0.5, 0.05, 2.0
"""How long offsets that no header covers are waited for (sources send five markers a second);
longest wait for the topic, while the channel may have something; for where it ends. [s]"""
ANSWERS = 0.005
"""Longest wait while a repair is under way. [s]"""
READER: Mapping[str, Any] = {
    "enable_partition_eof": True, "fetch_wait_max_ms": 500, "auto_offset_reset": "latest"
}  # fmt: skip
"""What is not there any more is in the topic; Kafka answers at once where something comes."""


class ChannelListener:
    """Follows which channels there are, and reads one that covers a condition, for each topic.

    What cannot be read for lack of a right, or is not there, is as no channel.

    Args:
        bootstrap: ``HOST:PORT[,HOST:PORT…]``.
        surveys: Whose alerts each of the topics has that are wanted.
        where: The condition.

    Attributes:
        partitions: What was received, by partition of the topics; whoever reads them keeps it.
        dropped: Records that no source of a channel wrote, by reason.
    """

    patience, tick = PATIENCE, TICK

    def __init__(self, bootstrap: str, surveys: Mapping[str, str], where: str) -> None:
        self._surveys, self._where = surveys, where
        self.partitions: dict[TopicPartition, ReorderBuffer] = {}
        self.dropped: Counter[str] = Counter()
        self._table, self._known = ChannelTable(), False
        self._chosen: dict[str, ChannelMapping] = {}
        self._assigned: dict[TopicPartition, TopicPartition] = {}  # of a channel: of its topic
        self._consumer = consumer(bootstrap, **READER)

    @property
    def name(self) -> str:
        """What is listened to."""
        return f"channel {', '.join(f'{one.name} of {topic}' for topic, one in self._chosen.items())}"

    def look(self, *, wait: bool = False) -> None:
        """Begin to follow which channels there are; never wait for it."""
        self._consumer.assign([TopicPartitionOffset(CHANNELS, 0, OFFSET_BEGINNING)])

    def listen(self, timeout: float, answers: Sequence[Any] = ()) -> None:
        """Take what has come, or what comes first within *timeout* [s]; *answers* are awaited."""
        self._follow_assignment()
        if (first := self._consumer.poll(min(timeout, ANSWERS) if answers else timeout)) is None:
            return
        now, before = time.monotonic(), self._table.position
        for message in [first, *self._consumer.consume(AT_ONCE - 1, 0)]:
            if message.topic() == CHANNELS:
                self._note(message)
            elif message.error() is None and (reason := self._take(message, now)) is not None:
                self.dropped[reason] += 1
        if self._known and self._table.position != before:
            self._choose()

    def end_of(self, partition: TopicPartition, known: int) -> int | None:
        """Return where *partition* of a topic ends; None where there is no channel of it.

        Where Kafka is away it is *known*, for nothing is missed.
        """
        if partition[0] not in self._chosen:
            return None
        try:
            asked = TopicPartitionOffset(*partition)
            return int(self._consumer.get_watermark_offsets(asked, timeout=END_TIMEOUT, cached=False)[1])
        except KafkaException:
            return known

    def close(self) -> None:
        """Leave Kafka."""
        self._consumer.close()

    def _note(self, message: Message) -> None:
        """Note a record of the topic `channels`, or its end."""
        if (error := message.error()) is None:
            key = (message.key() or b"").decode(errors="replace")
            self._table.apply(key, message.value(), message.timestamp()[1], message.offset() or 0)
        elif error.code() == KafkaError._PARTITION_EOF and not self._known:
            self._known = True
            self._choose()

    def _choose(self) -> None:
        """Choose for each topic the channel that is read, and forget what another one said."""
        for topic, of_survey in self._surveys.items():
            mappings = [one.mapping for one in self._table.of(topic) if one.mapping.derived]
            found, before = covering(self._where, of_survey, mappings), self._chosen.pop(topic, None)
            if found is not None:
                self._chosen[topic] = found
            if (found and number_of(found)) != (before and number_of(before)):
                for buffer in (one for (name, _), one in self.partitions.items() if name == topic):
                    buffer.reset()

    def _follow_assignment(self) -> None:
        """Read the partitions of the channels that are ours, and no others."""
        wanted = {
            (channel(topic, self._chosen[topic].name), number): (topic, number)
            for topic, number in self.partitions
            if topic in self._chosen
        }
        if wanted == self._assigned:
            return
        gone, new = self._assigned.keys() - wanted.keys(), wanted.keys() - self._assigned.keys()
        if gone:
            self._consumer.incremental_unassign([TopicPartitionOffset(*one) for one in gone])
        if new:
            self._consumer.incremental_assign([TopicPartitionOffset(*one, OFFSET_END) for one in new])
        self._assigned = wanted

    def _take(self, message: Message, now: float) -> str | None:
        """Take in a record of a channel; return why it is dropped, None where it is not."""
        place = self._assigned.get((str(message.topic()), message.partition() or 0))
        buffer = self.partitions.get(place) if place else None
        if place is None or buffer is None:  # it was ours a moment ago
            return None
        headers: Any = message.headers() or ()
        try:
            said = coverage_of(next((value for name, value in headers if name == HEADER), b""))
        except CoverageError:
            return "malformed"
        if place[0] not in self._chosen or said.number != number_of(self._chosen[place[0]]):
            return "foreign"
        record = _record(message, place, said.offset, headers) if said.offset >= 0 else None
        for known in said.ranges:
            buffer.add_known(known, [record] if record is not None and known is said.ranges[-1] else [], now)
        return None


def _record(
    message: Message, place: TopicPartition, offset: int, headers: Sequence[tuple[str, Any]]
) -> Message:
    """Return the record as it lies in its topic."""
    own = [one for one in headers if one[0] != HEADER]
    return Message(
        topic=place[0], partition=place[1], offset=offset, key=message.key(), value=message.value(),
        headers=own or None, timestamp=message.timestamp(),
    )  # fmt: skip
