"""A reader's records by multicast: from the LAN while datagrams come, else from Kafka.

A partition begins in Kafka.  When what the LAN says joins what was handed out, Kafka's fetching is
paused and the LAN hands out; what it loses is repaired by offset.  When it is silent, or has lost
very much, the partition goes back to Kafka, where it goes on at the same offset.  The topic of a
derived channel is received as a LAN is.
"""

import logging
import time
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from confluent_kafka import KafkaException, Message
from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.consumers.source.consumer_group import GroupSource
from nightwire.consumers.source.multicast.channel_listener import ChannelListener
from nightwire.consumers.source.multicast.in_process import InProcessListener
from nightwire.consumers.source.multicast.listener import Listener
from nightwire.consumers.source.multicast.reorder_buffer import ReorderBuffer
from nightwire.consumers.source.multicast.repair import SHORT, Repairs
from nightwire.consumers.source.record_source import RecordSource, next_offsets, position_of
from nightwire.core.datagrams import Channel, Judge, channel_judge
from nightwire.core.kafka import RecordFetcher, TopicPartition, error_text
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

AnyListener = Listener | ChannelListener | InProcessListener


class MulticastSource(RecordSource):
    """Records by assignment, by multicast or a channel where that is received.

    Args:
        given: What `RecordSource` takes.
        listener: Receives it.
        repair: Fetches what was lost.
        decoder: Reads alerts as they were written, for channels with a condition.
        more: What else a source takes.
    """

    def __init__(
        self, *given: Any, listener: AnyListener, repair: RecordFetcher, decoder: AlertDecoder, **more: Any
    ) -> None:
        super().__init__(*given, **more)
        self._listener, self._repairs, self._decoder = listener, Repairs(repair), decoder
        self._asked: dict[TopicPartition, float] = {}  # since when a repair is under way
        self._silent = set[TopicPartition]()  # of these: all that there is was asked for
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
        self._listener.look(wait=True)
        super().open()

    def close(self) -> None:
        """Leave the group and Kafka."""
        self._listener.close()
        self._repairs.close()
        super().close()

    def take(self, most: int, timeout: float) -> list[Message]:
        """Return the next records of the channel: as of `RecordSource`, but for what it leaves out.

        Raises:
            KafkaException: Reading cannot go on.
        """
        messages = super().take(most, timeout)
        if not self._judges:
            return messages
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
            answers = [self._repairs] if self._asked else []
            self._listener.listen(min(left, TICK) if by_lan else 0.0, answers)
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
        self._take_repairs()
        now = time.monotonic()
        for partition, buffer in self._listener.partitions.items():
            buffer.advance(self._next[partition])
            if partition in self._by_lan:
                self._from_lan(partition, buffer, now)
            elif self._tail is None and buffer.connects(now):
                self._to_lan(partition, buffer)
                self._from_lan(partition, buffer, now)

    def _follow_assignment(self) -> None:
        """Receive the partitions that are ours, and no others."""
        known = self._listener.partitions
        for gone in known.keys() - self._next.keys():
            del known[gone]
            self._by_lan.discard(gone)
            self._asked.pop(gone, None)
            self._silent.discard(gone)
        for partition, offset in self._next.items():
            if partition not in known or known[partition].next > offset:  # new, or given back to us
                known[partition] = ReorderBuffer(offset, self._listener.patience)
                self._by_lan.discard(partition)

    def _take_repairs(self) -> None:
        for partition, gaps, messages, why in self._repairs.answers():
            if self._asked.pop(partition, None) is None or partition not in self._by_lan:
                continue
            buffer, was_silent = self._listener.partitions[partition], partition in self._silent
            self._silent.discard(partition)
            offsets = [one.offset() or 0 for one in messages]
            for gap in gaps if why is None else ():
                found = messages[bisect_left(offsets, gap.start) : bisect_left(offsets, gap.stop)]
                buffer.fill(gap, found)
                self.repaired += len(found)
            if why is not None:
                self._to_kafka(partition, why)
            elif was_silent and messages:
                self._hand_out_ready(partition, buffer)
                self._to_kafka(partition, "nobody says what of it is wanted")
            elif was_silent:
                buffer.confirm(time.monotonic())
            elif messages and buffer.note_uncovered(time.monotonic()):
                self._hand_out_ready(partition, buffer)
                self._to_kafka(partition, "others write there too")

    def _from_lan(self, partition: TopicPartition, buffer: ReorderBuffer, now: float) -> None:
        self._hand_out_ready(partition, buffer)
        if (since := self._asked.get(partition)) is not None:
            if now - since > SHORT:
                self._to_kafka(partition, f"Kafka does not say for {SHORT:g} s what was lost")
            return
        why, gaps = None, buffer.overdue(now)
        if not gaps and buffer.is_behind(now):
            why, gaps = self._silence(partition, buffer, now)
        if (lost := sum(map(len, gaps))) > LONG_GAP:
            why = f"{lost:,} records were lost"
        if why is not None:
            self._to_kafka(partition, why)
        elif gaps:
            self._repairs.ask(partition, gaps)
            self._asked[partition] = now

    def _silence(
        self, partition: TopicPartition, buffer: ReorderBuffer, now: float
    ) -> tuple[str | None, list[range]]:
        """Return why a silent partition is left, or what may have been missed of it."""
        end = self._listener.end_of(partition, buffer.next)
        if end is None and buffer.is_silent(now):
            return "nothing is received", []
        if end is None or end < buffer.next:  # the topic was made anew, or a relay is far behind
            buffer.leave(now)
            return "what is received lies before that", []
        if end == buffer.next:
            buffer.confirm(now)
            return None, []
        self._silent.add(partition)
        return None, [range(buffer.next, end)]

    def _hand_out_ready(self, partition: TopicPartition, buffer: ReorderBuffer) -> None:
        for messages, was_sent in buffer.ready():
            self._hand_out(partition, messages, was_sent)
        self._next[partition] = buffer.next

    def _hand_out(self, partition: TopicPartition, messages: Sequence[Message], was_sent: bool) -> None:
        """Add *messages* to the backlog; those that a relay sent are the channel's."""
        if messages and super()._takes(messages[-1]):
            self._backlog.extend(messages)
            if was_sent and partition[0] in self._judges:
                self._carried |= dict.fromkeys(map(position_of, messages), True)

    def _to_lan(self, partition: TopicPartition, buffer: ReorderBuffer) -> None:
        self._consumer.pause([TopicPartitionOffset(*partition)])
        self._repairs.ask(partition, ())
        self._by_lan.add(partition)
        buffer.confirm(time.monotonic())
        log.info("%s[%d]: by %s from offset %d", *partition, self._listener.name, self._next[partition])

    def _to_kafka(self, partition: TopicPartition, why: str) -> None:
        self._by_lan.discard(partition)
        self._asked.pop(partition, None)
        self._silent.discard(partition)
        self._listener.partitions[partition].forget_end()
        place = TopicPartitionOffset(*partition, self._next[partition])
        level = logging.INFO if self._listener.patience else logging.WARNING  # channels come and go
        log.log(level, "%s[%d]: from Kafka from offset %d: %s", *partition, place.offset, why)
        try:
            self._consumer.seek(place)
            self._consumer.resume([place])
        except KafkaException as error:
            if partition in self._next:
                log.warning("%s[%d]: %s; assigning it anew", *partition, error_text(error))
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
    """Records of a member of a group, by multicast or a channel where that is received."""

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
        """What is not received, since it is not wanted, is done with what came before it."""
        if self._backlog:
            return
        for partition in self._by_lan & self._next.keys():
            done = self._done.get(partition, self._begun.get(partition, 0))
            if self._taken.get(partition, 0) <= done < self._next[partition]:
                self.mark_done({partition: self._next[partition]})
