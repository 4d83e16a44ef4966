"""The outlets of a topic's channels, as the topic `channels` maps them to groups, followed.

A mapping holds from the offsets that it tells: where a channel goes to another group, the old
outlet ends there and the new one begins, so that each record is sent to one of them.
"""

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait

from confluent_kafka import KafkaException

from nightwire.core.channels import ChannelMapping, HeldMapping
from nightwire.core.kafka import DeliveryError
from nightwire.multicast.outlet import Outlet
from nightwire.multicast.positions import Position
from nightwire.schemas import MendableError

log = logging.getLogger("nightwire.relay")

LINGER = 10.0
"""So long an outlet that has ended tells where, for those who have lost its last datagrams. [s]"""
NEAR = 512
"""So many records before a channel begins, its outlet is waited for."""
WAIT = 1.0
"""Longest wait for it: heartbeats wait too. [s]  What it begins too late for receivers fetch."""
AGAIN = 30.0
"""After so long an outlet that was refused is tried again. [s]"""
SOON = 1.0
"""After so long one that Kafka did not answer about. [s]"""


class MappedOutlets:
    """Outlets of the channels of one topic.

    Args:
        channels: Returns the channels of now, those of higher priority first.
        open_outlet: Opens that of a channel with a group; slow, so it runs in a thread of its own.
    """

    def __init__(
        self, channels: Callable[[], Sequence[HeldMapping]], open_outlet: Callable[[ChannelMapping], Outlet]
    ) -> None:
        self._channels, self._open = channels, open_outlet
        self._mappings: dict[str, ChannelMapping] = {}
        self._outlets: dict[str, Outlet] = {}
        self._opening: dict[str, Future[Outlet]] = {}
        self._refused: dict[str, tuple[str, float]] = {}  # why, and when it is tried again; late ones too
        self._ended: list[Outlet] = []
        self._opener = ThreadPoolExecutor(1, "opening-outlets")

    def refresh(self, positions: Mapping[int, Position]) -> Sequence[Outlet]:
        """Return the outlets of now, those of higher priority first, at least *positions* old."""
        found = {one.mapping.name: one.mapping for one in self._channels()}
        for name in self._mappings.keys() - found.keys():
            self._end(name, ())
            del self._mappings[name]
        for name, mapping in found.items():
            if mapping != (before := self._mappings.get(name)):
                self._change(name, before, mapping)
        self._try_again()
        self._take_opened(positions)
        self._forget_ended(positions)
        every = [*self._ended, *self._outlets.values()]
        return sorted(every, key=lambda one: -one.priority)

    def close(self) -> None:
        """End all."""
        self._opener.shutdown(cancel_futures=True)
        for one in (*self._ended, *self._outlets.values()):
            one.close()

    def _change(self, name: str, before: ChannelMapping | None, mapping: ChannelMapping) -> None:
        self._mappings[name] = mapping
        if before is not None and _carried(before) == _carried(mapping):
            if name in self._outlets:
                self._outlets[name].priority = mapping.priority
            return
        self._end(name, mapping.since)
        if mapping.group is not None:
            self._opening[name] = self._opener.submit(self._open, mapping)

    def _end(self, name: str, until: Sequence[int]) -> None:
        """Let the outlet of a channel end at the offsets *until*, of other partitions now."""
        self._refused.pop(name, None)
        if (opening := self._opening.pop(name, None)) is not None:
            opening.cancel()
            opening.add_done_callback(_close)
        if (outlet := self._outlets.pop(name, None)) is not None:
            outlet.until = until
            self._ended.append(outlet)

    def _try_again(self) -> None:
        for name, (why, at) in self._refused.items():
            if time.monotonic() >= at and name not in self._opening:
                self._refused[name] = why, math.inf
                self._opening[name] = self._opener.submit(self._open, self._mappings[name])

    def _take_opened(self, positions: Mapping[int, Position]) -> None:
        """Take in what was opened; wait for it where its channel is about to begin."""
        deadline = time.monotonic() + WAIT
        for name, opening in [*self._opening.items()]:
            mapping = self._mappings[name]
            near = any(one.next + NEAR > mapping.begins(number) for number, one in positions.items())
            if near and name not in self._refused:
                wait([opening], max(0.0, deadline - time.monotonic()))
                self._refused[name] = "", math.inf  # waited for no more
            if not opening.done():
                continue
            del self._opening[name]
            try:
                outlet = self._outlets[name] = opening.result()
            except (KafkaException, MendableError) as error:
                self._refuse(name, error)
            else:
                self._refused.pop(name, None)
                for number, one in positions.items():
                    outlet.begin(number, one._replace(sent=one.next - 1))

    def _refuse(self, name: str, error: Exception) -> None:
        if self._refused.get(name, ("",))[0] != str(error):
            log.warning("channel %s is not sent, and tried again: %s", name, error)
        away = isinstance(error, KafkaException | DeliveryError)
        self._refused[name] = str(error), time.monotonic() + (SOON if away else AGAIN)

    def _forget_ended(self, positions: Mapping[int, Position]) -> None:
        """Close outlets whose end all have heard of, or whose channel is on its group again."""
        now = time.monotonic()
        for one in [*self._ended]:
            if any(at.next < one.offsets(number).stop for number, at in positions.items()):
                continue
            one.ended = one.ended or now
            again = any(
                other.packer.channel.number == one.packer.channel.number for other in self._outlets.values()
            )
            if again or now - one.ended > LINGER:
                self._ended.remove(one)
                one.close()


def _carried(mapping: ChannelMapping) -> tuple[str | None, str, bool]:
    return mapping.group, mapping.condition, mapping.full


def _close(opening: "Future[Outlet]") -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()
