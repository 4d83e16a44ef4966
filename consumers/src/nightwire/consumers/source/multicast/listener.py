"""The ear of a receiver: datagrams of the channels of its topics, believed or dropped by reason."""

import logging
import select
import time
from collections import Counter
from collections.abc import Callable, Sequence

from confluent_kafka import TIMESTAMP_CREATE_TIME, KafkaException, Message

from nightwire.consumers.source.multicast.in_order import Held, InOrder
from nightwire.core.datagrams import (
    HEARTBEAT,
    LITE,
    LITE_HEADER,
    LONGEST,
    POINTER,
    Channel,
    Datagram,
    GroupAddress,
    RefusedDatagramError,
    believed,
    decode_beats,
    decode_record,
    open_receiver,
    read_channels,
)
from nightwire.core.kafka import TopicPartition
from nightwire.core.runtime import Backoff

log = logging.getLogger("nightwire.consumers")

AT_ONCE = 512
"""Most datagrams that are taken at once."""
LOOK_AGAIN = (2.0, 30.0)
"""Time between two looks at what channels there are: the first, and the longest while these stay
as they are, for others may send to the group as well. [s]"""
TICK = 0.01
"""Longest wait for the topic itself, while the LAN may have something. [s]"""
UNKNOWN = frozenset({"foreign", "unknown_key", "unsigned"})
"""Reasons that may be a channel, or a key, which is not known yet."""


class Listener:
    """Hears a multicast group.

    Args:
        address: The group.
        bootstrap: Kafka, which knows what the channels are.
        topics: Those that are wanted.

    Raises:
        GroupAddressError: The group cannot be joined.
    """

    name, patience, tick = "multicast", 0.0, TICK

    def __init__(self, address: GroupAddress, bootstrap: str, topics: Sequence[str]) -> None:
        self._address, self._bootstrap, self._topics = address, bootstrap, topics
        self.partitions: dict[TopicPartition, InOrder] = {}
        self.dropped: Counter[str] = Counter()
        self.on_channel: Callable[[Channel], None] = lambda _channel: None
        self._channels: dict[int, Channel] = {}
        self._pauses, self._look_at = Backoff(*LOOK_AGAIN), 0.0
        self._socket = open_receiver(address)

    def look(self) -> None:
        """Read again which channels there are, and by what keys they are signed."""
        try:
            known = [read_channels(self._bootstrap, topic, patience=2.0) for topic in self._topics]
        except KafkaException as error:
            log.warning("channels of %s not read: %s", ", ".join(self._topics), error.args[0].str())
            return
        there = [one[self._address.name] for one in known if self._address.name in one]
        new = [channel for channel in there if self._channels.get(channel.number) != channel]
        for channel in new:
            self.on_channel(channel)
            self._pauses.reset()
        self._channels = {channel.number: channel for channel in there}

    def listen(self, timeout: float) -> None:
        """Take what has come, or what comes first within *timeout* [s]."""
        if not select.select([self._socket], [], [], timeout)[0]:
            return
        now, before = time.monotonic(), sum(self.dropped[reason] for reason in UNKNOWN)
        for _ in range(AT_ONCE):
            try:
                raw = self._socket.recv(LONGEST)
            except BlockingIOError:
                break
            if (reason := self._take(raw, now)) is not None:
                self.dropped[reason] += 1
        unknown = sum(self.dropped[reason] for reason in UNKNOWN) - before
        if unknown and now >= self._look_at:
            self.look()
            self._look_at = time.monotonic() + self._pauses.next()

    def end_of(self, _partition: TopicPartition) -> None:
        """Say that silence tells enough: a relay has a heartbeat."""

    def close(self) -> None:
        """Leave the group."""
        self._socket.close()

    def _take(self, raw: bytes, now: float) -> str | None:
        """Take in a datagram; return why it is dropped, None where it is not."""
        try:
            one, channel = believed(raw, self._channels)
            return (self._beats if one.flags & HEARTBEAT else self._record)(one, channel.topic, now)
        except RefusedDatagramError as error:
            return error.reason

    def _beats(self, one: Datagram, topic: str, now: float) -> str | None:
        wrong = None
        for beat in decode_beats(one.body):
            if (partition := self.partitions.get((topic, beat.partition))) is not None:
                wrong = partition.hear(beat, one.time, now) or wrong
        return wrong

    def _record(self, one: Datagram, topic: str, now: float) -> str | None:
        partition = self.partitions.get((topic, one.partition))
        if partition is None:  # another member's of our group
            return None
        if (wrong := partition.admit(one, now)) is not None:
            return wrong
        if (body := partition.whole(one)) is not None:
            partition.hold(one.offset, _held(one, topic, body))
        return None


def _held(one: Datagram, topic: str, body: bytes) -> Held:
    if one.flags & POINTER:
        return Held(one.previous, None, 0)
    key, pairs, value = decode_record(one.flags, body)
    headers: list[tuple[str, str | bytes | None]] = [*pairs]
    if one.flags & LITE:
        headers.append((LITE_HEADER, b"1"))
    message = Message(
        topic=topic, partition=one.partition, offset=one.offset, key=key, value=value, headers=headers,
        timestamp=(TIMESTAMP_CREATE_TIME, one.time),
    )  # fmt: skip
    return Held(one.previous, message, len(body))
