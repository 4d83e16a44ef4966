"""A reader's records by multicast: from the LAN while it is heard, from Kafka while it is not.

A partition begins in Kafka.  When what the LAN says joins what was handed out, Kafka's fetching is
paused and the LAN hands out; what it loses is repaired by offset.  When it is silent, or has lost
very much, the partition goes back to Kafka, where it goes on at the same offset.
"""

import logging
import time
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import KafkaException, Message
from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.consumers.source.consumer_group import GroupSource
from nightwire.consumers.source.multicast.in_order import InOrder
from nightwire.consumers.source.multicast.listener import Listener
from nightwire.consumers.source.multicast.repair import MissingError, Repair
from nightwire.consumers.source.record_source import RecordSource, position_of
from nightwire.core.datagrams import Channel, Judge, channel_judge
from nightwire.core.kafka import TopicPartition
from nightwire.schemas import AlertDecoder

log = logging.getLogger("nightwire.consumers")

LONG_GAP = 2_000
"""A gap of more offsets is read from Kafka as a stream, not record by record."""
TICK = 0.05
"""Longest time without a look at Kafka, where a group's members come and go. [s]"""
KAFKA_TICK = 0.01
"""Longest wait for Kafka while the LAN may have something. [s]"""


class MulticastSource(RecordSource):
    """Records by assignment, by multicast where it is heard.

    Args:
        given: What `RecordSource` takes.
        listener: Hears the group.
        repair: Fetches what was lost.
        decoder: Reads alerts as they were written, for channels with a condition.
        more: What else a source takes.
    """

    def __init__(
        self, *given: Any, listener: Listener, repair: Repair, decoder: AlertDecoder, **more: Any
    ) -> None:
        super().__init__(*given, **more)
        self._listener, self._repair, self._decoder = listener, repair, decoder
        self._by_lan: set[TopicPartition] = set()
        self._judges: dict[str, Judge] = {}  # by topic, of channels with a condition
        self.repaired = 0
        listener.on_channel = self._channel_known

    def open(self) -> None:
        """Find where to begin, and what the group carries.

        Raises:
            TopicError: A topic does not exist.
            KafkaException: Kafka cannot be reached.
        """
        self._listener.look()
        super().open()

    def close(self) -> None:
        """Leave the group and Kafka."""
        self._listener.close()
        self._repair.close()
        super().close()

    @property
    def way(self) -> str:
        """Where records come from now: ``multicast``, ``kafka``, or ``both``, by partition."""
        if not self._by_lan:
            return "kafka"
        return "multicast" if len(self._by_lan) == len(self._next) else "both"

    @property
    def dropped(self) -> Mapping[str, int]:
        """Datagrams that were not believed or not needed, by reason."""
        return self._listener.dropped

    def _fetch(self, most: int, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        while True:
            left = max(0.0, deadline - time.monotonic())
            by_lan = self.way == "multicast"
            self._listener.listen(min(left, TICK) if by_lan else 0.0)
            self._settle()
            by_kafka = len(self._backlog)
            super()._fetch(most, 0.0 if by_lan or self._backlog else min(left, KAFKA_TICK))
            self._judge_from(by_kafka)
            if self._backlog or left <= 0.0:
                return

    def _takes(self, message: Message) -> bool:
        partition, offset = position_of(message)
        if partition in self._by_lan or offset < self._next.get(partition, 0):
            return False  # fetched before the LAN took over, or before it gave up
        return super()._takes(message)

    def _settle(self) -> None:
        """Take what the LAN has for each partition, and choose the way of each."""
        self._follow_assignment()
        now = time.monotonic()
        for partition, heard in self._listener.partitions.items():
            heard.advance(self._next[partition])
            if partition in self._by_lan:
                self._from_lan(partition, heard, now)
            elif self._tail is None and heard.connects(now):
                self._to_lan(partition)
                self._from_lan(partition, heard, now)

    def _follow_assignment(self) -> None:
        """Hear the partitions that are ours, and no others."""
        known = self._listener.partitions
        for gone in known.keys() - self._next.keys():
            del known[gone]
            self._by_lan.discard(gone)
        for partition, offset in self._next.items():
            if partition not in known or known[partition].next > offset:  # new, or given back to us
                known[partition] = InOrder(offset)
                self._by_lan.discard(partition)

    def _from_lan(self, partition: TopicPartition, heard: InOrder, now: float) -> None:
        self._hand_out(heard.ready())
        while gap := heard.gap():
            if len(gap) > LONG_GAP:
                return self._to_kafka(partition, f"{len(gap):,} records were lost")
            try:
                found = self._repair.fetch(partition, gap)
            except MissingError as error:
                return self._to_kafka(partition, str(error))
            self.repaired += len(found)
            begin = len(self._backlog)
            self._hand_out(found)
            self._judge_from(begin)
            heard.advance(gap.stop)
            self._next[partition] = max(self._next[partition], gap.stop)
            self._hand_out(heard.ready())
        if heard.is_silent(now):
            self._to_kafka(partition, "nothing is heard")
        return None

    def _hand_out(self, messages: Iterable[Message]) -> None:
        for message in messages:
            if super()._takes(message):
                self._backlog.append(message)

    def _to_lan(self, partition: TopicPartition) -> None:
        self._consumer.pause([TopicPartitionOffset(*partition)])
        self._repair.prepare(partition)
        self._by_lan.add(partition)
        log.info("%s[%d]: by multicast from offset %d", *partition, self._next[partition])

    def _to_kafka(self, partition: TopicPartition, why: str) -> None:
        self._by_lan.discard(partition)
        place = TopicPartitionOffset(*partition, self._next[partition])
        log.warning("%s[%d]: from Kafka from offset %d: %s", *partition, place.offset, why)
        try:
            self._consumer.seek(place)
            self._consumer.resume([place])
        except KafkaException as error:
            if partition in self._next:
                log.warning("%s[%d]: %s; assigning it anew", *partition, error.args[0].str())
                self._consumer.incremental_unassign([place])
                self._consumer.incremental_assign([place])

    def _channel_known(self, channel: Channel) -> None:
        self._judges.pop(channel.topic, None)
        if channel.condition:
            self._judges[channel.topic] = channel_judge(channel.condition, channel.survey, self._decoder)
            log.info("%s carries of %s: %s", channel.group, channel.topic, channel.condition)

    def _judge_from(self, begin: int) -> None:
        """Leave out of the backlog from *begin* on what the channel does not carry."""
        if not self._judges or begin == len(self._backlog):
            return
        every = list(self._backlog)
        given = every[begin:]
        for topic, judge in self._judges.items():
            of_topic = [one for one in given if one.topic() == topic]
            verdicts = dict(zip(map(id, of_topic), judge([one.value() for one in of_topic]), strict=True))
            given = [one for one in given if verdicts.get(id(one), True)]
        self._backlog = deque([*every[:begin], *given])


class MulticastGroupSource(MulticastSource, GroupSource):
    """Records of a member of a group, by multicast where it is heard."""
