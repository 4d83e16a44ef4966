"""Datagrams of the channels of a receiver's topics, believed or dropped by reason."""

import logging
import select
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import TIMESTAMP_CREATE_TIME, KafkaException, Message

from nightwire.consumers.source.multicast.group_choice import GroupChoice
from nightwire.consumers.source.multicast.reorder_buffer import SILENCE, BufferedRange, ReorderBuffer
from nightwire.core.channels import ChannelMapping, channel_of
from nightwire.core.datagrams import (
    HEARTBEAT,
    LITE,
    LITE_HEADER,
    LONGEST,
    PACKED,
    POINTER,
    Channel,
    Datagram,
    Entry,
    GroupAddress,
    GroupAddressError,
    RefusedDatagramError,
    believed,
    decode_beats,
    decode_pack,
    decode_record,
    open_receiver,
    parse_group,
    read_channels,
)
from nightwire.core.kafka import TopicPartition, asks_for_passwords, error_text
from nightwire.core.runtime import Backoff

log = logging.getLogger("nightwire.consumers")

AT_ONCE = 512
"""Most datagrams that are taken of a group at once."""
LOOK_AGAIN = (0.2, 30.0)
"""Time between two looks at what channels there are: the first, and the longest while these stay
as they are, for others may send to the group as well. [s]"""
CHOICE = 0.1
"""Time between two looks at which channels are the ones to listen to. [s]"""
TICK = 0.01
"""Longest wait for the topic itself, while the LAN may have something. [s]"""
UNKNOWN = frozenset({"foreign", "unknown_key", "unsigned"})
"""Reasons that may be a channel, or a key, which is not known yet."""


@dataclass(eq=False)
class Membership:
    """A group that is joined.

    Attributes:
        socket: Receives from it.
        chosen: By topic, the channels for which it is listened to; None where the group itself was
            asked for.
        channels: What it carries, by number.
        received: Partitions of which something came since it was chosen.
        received_at: When something was received last. [s, the monotonic clock]
    """

    socket: socket.socket
    chosen: dict[str, ChannelMapping] | None = None
    channels: Mapping[int, Channel] = field(default_factory=dict)
    received: set[TopicPartition] = field(default_factory=set)
    received_at: float = field(default_factory=time.monotonic)


class Listener:
    """Receives multicast groups: that of *address*, or those of the channels that *choice* gives.

    Where another channel is chosen, its group is joined first; the old one is left when each
    partition was received on the new one.

    Args:
        address: The group; None follows *choice*.
        bootstrap: Kafka, which knows what the channels are.
        topics: Those that are wanted.
        choice: Chooses channels; it is closed with the listener.

    Raises:
        GroupAddressError: The group cannot be joined.
    """

    patience, tick = 0.0, TICK

    def __init__(
        self,
        address: GroupAddress | None,
        bootstrap: str,
        topics: Sequence[str],
        choice: GroupChoice | None = None,
    ) -> None:
        self._bootstrap, self._topics, self._choice = bootstrap, topics, choice
        self.partitions: dict[TopicPartition, ReorderBuffer] = {}
        self.dropped: Counter[str] = Counter()
        self.on_channel: Callable[[Channel], None] = lambda _channel: None
        self._joined: dict[str, Membership] = {}  # by group, the one that was joined last at the end
        self._refused: dict[str, str] = {}  # groups that cannot be joined, and why, as it was told
        self._pauses, self._look_at, self._choose_at = Backoff(*LOOK_AGAIN), 0.0, 0.0
        self._signed = choice is not None and asks_for_passwords(bootstrap)
        self._looking: threading.Thread | None = None
        self._known: Mapping[str, Sequence[Channel]] | None = None  # by group, until it is taken in
        if address is not None:
            self._joined[address.name] = Membership(open_receiver(address))

    @property
    def name(self) -> str:
        """What is listened to."""
        return " ".join(["multicast", *([*self._joined][-1:] if self._choice else [])])

    def look(self, *, wait: bool = False) -> None:
        """Read again which channels there are, and by what keys they are signed; *wait* for it."""
        if self._looking is None or not self._looking.is_alive():
            self._looking = threading.Thread(target=self._read, name="channels", daemon=True)
            self._looking.start()
        if wait:
            self._looking.join()
            self._take_in()

    def listen(self, timeout: float, answers: Sequence[Any] = ()) -> None:
        """Take what has come, or what comes first within *timeout* [s], or comes to *answers*."""
        self._take_in()
        self._follow_choice()
        sockets = [one.socket for one in self._joined.values()]
        if not select.select([*sockets, *answers], [], [], timeout)[0]:
            return
        now, before = time.monotonic(), sum(self.dropped[reason] for reason in UNKNOWN)
        for one in reversed(self._joined.values()):  # what a channel was sent before it moved lies there
            self._take_all(one, now)
        unknown = sum(self.dropped[reason] for reason in UNKNOWN) - before
        if unknown and now >= self._look_at:
            self.look()
            self._look_at = time.monotonic() + self._pauses.next()

    def end_of(self, _partition: TopicPartition, _known: int) -> None:
        """Say that silence tells enough: a relay has a heartbeat."""

    def close(self) -> None:
        """Leave the groups."""
        for one in self._joined.values():
            one.socket.close()
        if self._choice is not None:
            self._choice.close()

    def _read(self) -> None:
        try:
            known = [read_channels(self._bootstrap, topic, patience=2.0) for topic in self._topics]
        except KafkaException as error:
            log.warning("channels of %s not read: %s", ", ".join(self._topics), error_text(error))
            return
        names = {name for one in known for name in one}
        self._known = {name: [one[name] for one in known if name in one] for name in names}

    def _take_in(self) -> None:
        """Take in what a look has found."""
        known, self._known = self._known, None
        if known is None:
            return
        for name, one in self._joined.items():
            there = _unsigned(one, self._signed)
            there |= {each.number: each for each in known.get(name, ()) if _is_meant(one, each)}
            for number, channel in there.items():
                if one.channels.get(number) != channel:
                    if self._choice is None:  # else whoever reads judges all by a condition of its own
                        self.on_channel(channel)
                    self._pauses.reset()
            one.channels = there

    def _follow_choice(self) -> None:
        """Join the groups that are chosen now, and leave those that are needed no more."""
        if self._choice is None or (now := time.monotonic()) < self._choose_at:
            return
        self._choose_at = now + CHOICE
        chosen = self._choice.chosen()
        for mapping in chosen.values():
            self._join(mapping, self._choice.interface)
        for name in [name for name in self._joined if self._is_left(name, chosen, now)]:
            log.info("left %s", name)
            self._joined.pop(name).socket.close()

    def _join(self, mapping: ChannelMapping, interface: str) -> None:
        name = mapping.group or ""
        if (member := self._joined.get(name)) is None:
            try:
                member = Membership(open_receiver(parse_group(name, interface)), {})
            except GroupAddressError as error:
                if self._refused.get(name) != (why := str(error)):
                    log.warning("%s; reading on without it", why)
                    self._refused[name] = why
                return
            self._joined[name] = member
            self._refused.pop(name, None)
        if member.chosen is None or member.chosen.get(mapping.topic) == mapping:
            return
        member.chosen[mapping.topic] = mapping
        member.received -= {one for one in member.received if one[0] == mapping.topic}
        still = {number: one for number, one in member.channels.items() if _is_meant(member, one)}
        member.channels = _unsigned(member, self._signed) | still
        log.info("joined %s: channel %s of %s", name, mapping.name, mapping.topic)
        self._pauses.reset()
        self._look_at = 0.0
        self.look()

    def _is_left(self, name: str, chosen: Mapping[str, ChannelMapping], now: float) -> bool:
        if any(mapping.group == name for mapping in chosen.values()):
            return False
        if now - self._joined[name].received_at > SILENCE:
            return True
        new = {
            topic: self._joined[str(mapping.group)]
            for topic, mapping in chosen.items()
            if mapping.group in self._joined
        }
        return all(
            topic in new
            and (topic, number) in new[topic].received
            and one.next >= chosen[topic].begins(number)
            for (topic, number), one in self.partitions.items()
        )

    def _take_all(self, one: Membership, now: float) -> None:
        for _ in range(AT_ONCE):
            try:
                raw = one.socket.recv(LONGEST)
            except BlockingIOError:
                return
            if (reason := self._take(one, raw, now)) is not None:
                self.dropped[reason] += 1

    def _take(self, member: Membership, raw: bytes, now: float) -> str | None:
        """Take in a datagram; return why it is dropped, None where it is not."""
        try:
            one, channel = believed(raw, member.channels)
            member.received_at = now
            if one.kind == HEARTBEAT:
                return self._beats(one, channel.topic, member, now)
            return self._records(one, channel.topic, member, now)
        except RefusedDatagramError as error:
            return error.reason

    def _beats(self, one: Datagram, topic: str, member: Membership, now: float) -> str | None:
        wrong = None
        for beat in decode_beats(one.body):
            if (partition := self.partitions.get((topic, beat.partition))) is not None:
                wrong = partition.note_heartbeat(beat, one.channel, one.time, now) or wrong
                member.received.add((topic, beat.partition))
        return wrong

    def _records(self, one: Datagram, topic: str, member: Membership, now: float) -> str | None:
        partition = self.partitions.get((topic, one.partition))
        if partition is None:  # another member's of our group
            return None
        member.received.add((topic, one.partition))
        pack = decode_pack(one) if one.kind == PACKED else None
        if (wrong := partition.admit(one, pack[-1].offset if pack else one.offset, now)) is not None:
            return wrong
        if pack is not None:
            messages = [_message(topic, one.partition, entry) for entry in pack]
            partition.insert(
                one.offset, BufferedRange(one.previous, pack[-1].offset, messages, len(one.body))
            )
        elif (body := partition.reassembled(one)) is not None:
            partition.insert(one.offset, _buffered(one, topic, body))
        return None


def _unsigned(member: Membership, signed: bool) -> dict[int, Channel]:
    """Return the channel for which a group was joined, where its mapping tells all of it."""
    there = map(channel_of, member.chosen.values()) if member.chosen and not signed else ()
    return {channel.number: channel for channel in there}


def _is_meant(member: Membership, channel: Channel) -> bool:
    """Return whether *channel* is listened to: what another one leaves out may well be wanted."""
    if member.chosen is None:
        return True
    mapping = member.chosen.get(channel.topic)
    return mapping is not None and channel_of(mapping).number == channel.number


def _buffered(one: Datagram, topic: str, body: bytes) -> BufferedRange:
    if one.flags & POINTER:
        return BufferedRange(one.previous, one.offset, None, 0)
    message = _message(topic, one.partition, Entry(one.offset, one.time, one.flags, body))
    return BufferedRange(one.previous, one.offset, [message], len(body))


def _message(topic: str, partition: int, one: Entry) -> Message:
    key, pairs, value = decode_record(one.flags, one.body)
    headers: list[tuple[str, str | bytes | None]] = [*pairs]
    if one.flags & LITE:
        headers.append((LITE_HEADER, b"1"))
    return Message(
        topic=topic, partition=partition, offset=one.offset, key=key, value=value, headers=headers,
        timestamp=(TIMESTAMP_CREATE_TIME, one.time),
    )  # fmt: skip
