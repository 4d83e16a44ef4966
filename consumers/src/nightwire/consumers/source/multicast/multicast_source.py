"""A reader's records by multicast: from the LAN while it is heard, from Kafka while it is not.

A partition begins in Kafka.  When what the LAN says joins what was handed out, Kafka's fetching is
paused and the LAN hands out; what it loses is repaired by offset.  When it is silent, or has lost
very much, the partition goes back to Kafka, where it goes on at the same offset.  The topic of a
derived channel is heard as a LAN is.
"""

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from confluent_kafka import KafkaException, Message
from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.consumers.source.consumer_group import GroupSource
from nightwire.consumers.source.multicast.channel_listener import ChannelListener
from nightwire.consumers.source.multicast.in_order import InOrder
from nightwire.consumers.source.multicast.listener import Listener
from nightwire.consumers.source.record_source import RecordSource, next_offsets, position_of
from nightwire.core.datagrams import Channel, Judge, channel_judge
from nightwire.core.kafka import MissingError, RecordFetcher, TopicPartition
from nightwire.schemas import AlertDecoder, RegistryAwayError

log = logging.getLogger("nightwire.consumers")

LONG_GAP = 2_000
"""A gap of more offsets is read from Kafka as a stream, not record by record."""
TICK = 0.05
"""Longest time without a look at Kafka, where a group's members come and go. [s]"""
JUDGED = 256
"""Records that are judged ahead, at once."""
MOST_STALE = 10_000
"""Verdicts about records that went to others, before they are forgotten."""
WAIT = 1.0
"""Time until a schema registry that was away is asked again. [s]"""

Ear = Listener | ChannelListener


class MulticastSource(RecordSource):
    """Records by assignment, by multicast or a channel where that is heard.

    Args:
        given: What `RecordSource` takes.
        listener: Hears it.
        repair: Fetches what was lost.
        decoder: Reads alerts as they were written, for channels with a condition.
        more: What else a source takes.
    """

    def __init__(
        self, *given: Any, listener: Ear, repair: RecordFetcher, decoder: AlertDecoder, **more: Any
    ) -> None:
        super().__init__(*given, **more)
        self._listener, self._repair, self._decoder = listener, repair, decoder
        self._by_lan: set[TopicPartition] = set()
        self._judges: dict[str, Judge] = {}  # by topic, of channels with a condition
        self._carried: dict[tuple[TopicPartition, int], bool] = {}  # whether a record is the channel's
        self.repaired = 0
        if isinstance(listener, Listener):
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

    def take(self, most: int, timeout: float) -> list[Message]:
        """Return the next records of the channel: as of `RecordSource`, but for what it leaves out.

        Raises:
            KafkaException: Reading cannot go on.
        """
        messages = super().take(most, timeout)
        try:
            self._judge([*messages, *islice(self._backlog, JUDGED)] if messages else ())
        except RegistryAwayError as error:
            log.warning("waiting for the schema registry: %s", error)
            self.put_back(messages)
            time.sleep(min(timeout, WAIT))
            return []
        return [one for one in messages if self._carried.pop(position_of(one), True)]

    @property
    def way(self) -> str:
        """Where records come from now: ``kafka``, as the listener says, or ``both``."""
        if not self._by_lan:
            return "kafka"
        return self._listener.name if self._all_by_lan else "both"

    @property
    def _all_by_lan(self) -> bool:
        return bool(self._by_lan) and len(self._by_lan) == len(self._next)

    @property
    def dropped(self) -> Mapping[str, int]:
        """Datagrams that were not believed or not needed, by reason."""
        return self._listener.dropped

    def _fetch(self, most: int, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        while True:
            left = max(0.0, deadline - time.monotonic())
            by_lan = self._all_by_lan
            self._listener.listen(min(left, TICK) if by_lan else 0.0)
            self._settle()
            super()._fetch(most, 0.0 if by_lan or self._backlog else min(left, self._listener.tick))
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
                known[partition] = InOrder(offset, self._listener.patience)
                self._by_lan.discard(partition)

    def _from_lan(self, partition: TopicPartition, heard: InOrder, now: float) -> None:
        self._hand_out(heard.ready(), sent=True)
        why: str | None = None
        while why is None and (gap := heard.overdue(now)):
            before, why = self.repaired, self._fetch_gap(partition, heard, gap)
            if why is None and self.repaired > before and heard.strays(now):
                why = "others write there too"
            self._hand_out(heard.ready(), sent=True)
        self._next[partition] = max(self._next[partition], heard.next)
        if why is None and heard.is_silent(now):
            why = self._silence(partition, heard, now)
        if why is not None:
            self._to_kafka(partition, why)

    def _fetch_gap(self, partition: TopicPartition, heard: InOrder, gap: range) -> str | None:
        """Hand out what the topic has in *gap*; return why that cannot be."""
        if len(gap) > LONG_GAP:
            return f"{len(gap):,} records were lost"
        try:
            found = self._repair.fetch(partition, gap)
        except MissingError as error:
            return str(error)
        self.repaired += len(found)
        self._hand_out(found)
        heard.advance(gap.stop)
        self._next[partition] = max(self._next[partition], gap.stop)
        return None

    def _silence(self, partition: TopicPartition, heard: InOrder, now: float) -> str | None:
        """Return why a silent partition is left; None where nothing was missed."""
        if (end := self._listener.end_of(partition)) is None:
            return "nothing is heard"
        before = self.repaired
        if gap := range(heard.next, end):
            why = self._fetch_gap(partition, heard, gap)
            if why or self.repaired > before:
                return why or "nobody says what of it is wanted"
        heard.confirm(now)
        return None

    def _hand_out(self, messages: Iterable[Message], *, sent: bool = False) -> None:
        """Add *messages* to the backlog; those that the relay *sent* are the channel's."""
        for message in messages:
            if super()._takes(message):
                self._backlog.append(message)
                if sent and self._judges:
                    self._carried[position_of(message)] = True

    def _to_lan(self, partition: TopicPartition) -> None:
        self._consumer.pause([TopicPartitionOffset(*partition)])
        self._repair.prepare(partition)
        self._by_lan.add(partition)
        log.info("%s[%d]: by %s from offset %d", *partition, self._listener.name, self._next[partition])

    def _to_kafka(self, partition: TopicPartition, why: str) -> None:
        self._by_lan.discard(partition)
        self._listener.partitions[partition].forget_end()
        place = TopicPartitionOffset(*partition, self._next[partition])
        level = logging.INFO if self._listener.patience else logging.WARNING  # channels come and go
        log.log(level, "%s[%d]: from Kafka from offset %d: %s", *partition, place.offset, why)
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

    def _judge(self, messages: Sequence[Message]) -> None:
        """Note which of *messages* the channel carries, of those of which it is not known.

        Raises:
            RegistryAwayError: A schema cannot be had just now.
        """
        unknown = [one for one in messages if position_of(one) not in self._carried]
        for topic, judge in self._judges.items():
            of_topic = [one for one in unknown if one.topic() == topic]
            verdicts = judge([one.value() for one in of_topic]) if of_topic else []
            self._carried |= dict(zip(map(position_of, of_topic), verdicts, strict=True))
        if len(self._carried) > len(self._backlog) + MOST_STALE:  # partitions went to others
            ours = {position_of(one) for one in (*messages, *self._backlog)}
            self._carried = {place: carried for place, carried in self._carried.items() if place in ours}


class MulticastGroupSource(MulticastSource, GroupSource):
    """Records of a member of a group, by multicast or a channel where that is heard."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self._taken: dict[TopicPartition, int] = {}  # offsets after what was handed out

    def take(self, most: int, timeout: float) -> list[Message]:
        """Return the next records, as `MulticastSource` and `GroupSource` do."""
        self._pass_over()
        messages = super().take(most, timeout)
        self._taken |= next_offsets(messages)
        return messages

    def _pass_over(self) -> None:
        """What is not heard, since it is not wanted, is done with what came before it."""
        if self._backlog:
            return
        for partition in self._by_lan & self._next.keys():
            done = self._done.get(partition, self._begun.get(partition, 0))
            if self._taken.get(partition, 0) <= done < self._next[partition]:
                self.mark_done({partition: self._next[partition]})
