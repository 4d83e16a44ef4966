"""The monitor of a multicast group: datagrams, gaps and drops, second by second."""

import select
import socket
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from nightwire.core.datagrams import (
    HEARTBEAT,
    LONGEST,
    Channel,
    Datagram,
    GroupAddress,
    RefusedDatagramError,
    believed,
    decode_beats,
    open_receiver,
    read_channels,
)


class GroupMonitor:
    """Counts the datagrams of a group.

    Args:
        channel: The expected one; None where no relay ever was.
    """

    def __init__(self, channel: Channel | None) -> None:
        self._channels = {} if channel is None else {channel.number: channel}
        self._last: dict[int, int] = {}
        self._epochs: dict[int, int] = {}
        self._counts: Counter[str] = Counter()
        self._dropped: Counter[str] = Counter()

    def add(self, raw: bytes) -> None:
        """Count a datagram."""
        try:
            one, _ = believed(raw, self._channels)
            (self._beat if one.flags & HEARTBEAT else self._record)(one)
        except RefusedDatagramError as error:
            self._dropped[error.reason] += 1
        else:
            self._counts.update(datagrams=1, bytes=len(raw))

    def snapshot(self) -> dict[str, Any]:
        """Return the counts since the last call."""
        counts, dropped = self._counts, self._dropped
        self._counts, self._dropped = Counter(), Counter()
        kinds = ("datagrams", "bytes", "records", "heartbeats", "missing")
        known = {name: counts[name] for name in kinds}
        return {**known, "dropped": dict(dropped), "epochs": dict(sorted(self._epochs.items()))}

    def _beat(self, one: Datagram) -> None:
        beats = list(decode_beats(one.body))
        self._counts["heartbeats"] += 1
        for beat in beats:
            self._epochs[beat.partition] = beat.epoch
            self._missing(beat.partition, beat.last)
            self._last[beat.partition] = beat.last

    def _record(self, one: Datagram) -> None:
        self._epochs[one.partition] = one.epoch
        self._counts["records"] += one.chunk == 0
        self._missing(one.partition, one.previous)
        self._last[one.partition] = max(one.offset, self._last.get(one.partition, -1))

    def _missing(self, partition: int, previous: int) -> None:
        """Count offsets sent and not received; with a condition, an upper limit."""
        if partition in self._last:
            self._counts["missing"] += max(0, previous - self._last[partition])


def monitor(address: GroupAddress, bootstrap: str, topic: str, seconds: float) -> Iterator[dict[str, Any]]:
    """Yield the counts of each second, for *seconds*.

    Raises:
        GroupAddressError: The group cannot be joined.
        KafkaException: Kafka cannot be reached.
    """
    group = GroupMonitor(read_channels(bootstrap, topic).get(address.name))
    with open_receiver(address) as receiver:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            _receive(receiver, group, min(1.0, left))
            yield group.snapshot()


def _receive(receiver: socket.socket, group: GroupMonitor, seconds: float) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if select.select([receiver], [], [], left)[0]:
            group.add(receiver.recv(LONGEST))


def summary(counts: Mapping[str, Any]) -> str:
    """Return the *counts* of a second in one line."""
    if not counts["datagrams"] and not counts["dropped"]:
        return "nothing is heard"
    parts = [
        f"{counts['datagrams']:,} datagrams, {counts['bytes'] / 1e6:.2f} MB, {counts['records']:,} records, "
        f"{counts['missing']:,} missing"
    ]
    dropped, epochs = counts["dropped"].items(), counts["epochs"].items()
    parts += [f"{count:,} dropped: {reason.replace('_', ' ')}" for reason, count in dropped]
    if epochs:
        parts.append("epochs " + " ".join(f"{number}:{epoch}" for number, epoch in epochs))
    return "; ".join(parts)
