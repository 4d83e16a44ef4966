"""The senders of a topic's channels, which follow the mappings in the topic `channels`.

A mapping holds from its offsets on: where a channel moves to another group, the old sender ends
and the new one begins there, so that each record is sent to one of them.
"""

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait

from confluent_kafka import KafkaException

from nightwire.core.channels import ChannelMapping, CurrentMapping
from nightwire.core.kafka import DeliveryError
from nightwire.multicast.group_sender import GroupSender
from nightwire.multicast.positions import Position
from nightwire.schemas import MendableError

log = logging.getLogger("nightwire.relay")

LINGER = 10.0
"""How long an ended sender sends heartbeats, for receivers that lost its last datagrams. [s]"""
LEAD_RECORDS = 512
"""Records before a channel's begin from which its opening sender is waited for."""
OPEN_WAIT = 1.0
"""Longest wait for it, heartbeats included. [s]  Receivers fetch what a late one leaves out."""
RETRY_REFUSED = 30.0
"""Pause before a refused sender is opened again. [s]"""
RETRY_UNAVAILABLE = 1.0
"""Pause before one is opened again for which Kafka did not answer. [s]"""


class MappedSenders:
    """The senders of one topic's channels.

    Args:
        channels: Returns the current channels, those of higher priority first.
        opener: Opens the sender of a channel with a group; slow, so it runs in its own thread.
    """

    def __init__(
        self, channels: Callable[[], Sequence[CurrentMapping]],
        opener: Callable[[ChannelMapping], GroupSender],
    ) -> None:  # fmt: skip
        self._channels, self._open_sender = channels, opener
        self._mappings: dict[str, ChannelMapping] = {}
        self._senders: dict[str, GroupSender] = {}
        self._opening: dict[str, Future[GroupSender]] = {}
        self._refused: dict[str, tuple[str, float]] = {}  # why, and when it is tried again; late ones too
        self._ended: list[GroupSender] = []
        self._opener = ThreadPoolExecutor(1, "opening-senders")

    def refresh(self, positions: Mapping[int, Position]) -> Sequence[GroupSender]:
        """Return the current senders, of higher priority first; new ones begin at *positions*."""
        found = {one.mapping.name: one.mapping for one in self._channels()}
        for name in self._mappings.keys() - found.keys():
            self._end(name, ())
            del self._mappings[name]
        for name, mapping in found.items():
            if mapping != (before := self._mappings.get(name)):
                self._change(name, before, mapping)
        self._retry_refused()
        self._adopt_opened(positions)
        self._close_ended(positions)
        every = [*self._ended, *self._senders.values()]
        return sorted(every, key=lambda one: -one.priority)

    def close(self) -> None:
        """Close all senders."""
        self._opener.shutdown(cancel_futures=True)
        for one in (*self._ended, *self._senders.values()):
            one.close()

    def _change(self, name: str, before: ChannelMapping | None, mapping: ChannelMapping) -> None:
        self._mappings[name] = mapping
        if before is not None and _carriage(before) == _carriage(mapping):
            if name in self._senders:
                self._senders[name].priority = mapping.priority
            return
        self._end(name, mapping.since)
        if mapping.group is not None:
            self._opening[name] = self._opener.submit(self._open_sender, mapping)

    def _end(self, name: str, until: Sequence[int]) -> None:
        """Let the sender of a channel end at the offsets *until*; in other partitions, now."""
        self._refused.pop(name, None)
        if (opening := self._opening.pop(name, None)) is not None:
            opening.cancel()
            opening.add_done_callback(_close)
        if (sender := self._senders.pop(name, None)) is not None:
            sender.until = until
            self._ended.append(sender)

    def _retry_refused(self) -> None:
        for name, (why, at) in self._refused.items():
            if time.monotonic() >= at and name not in self._opening:
                self._refused[name] = why, math.inf
                self._opening[name] = self._opener.submit(self._open_sender, self._mappings[name])

    def _adopt_opened(self, positions: Mapping[int, Position]) -> None:
        """Add opened senders; wait for one whose channel is about to begin."""
        deadline = time.monotonic() + OPEN_WAIT
        for name, opening in [*self._opening.items()]:
            mapping = self._mappings[name]
            near = any(one.next + LEAD_RECORDS > mapping.begins(number) for number, one in positions.items())
            if near and name not in self._refused:
                wait([opening], max(0.0, deadline - time.monotonic()))
                self._refused[name] = "", math.inf  # waited for no more
            if not opening.done():
                continue
            del self._opening[name]
            try:
                sender = self._senders[name] = opening.result()
            except (KafkaException, MendableError) as error:
                self._refuse(name, error)
            else:
                self._refused.pop(name, None)
                for number, one in positions.items():
                    sender.begin(number, one._replace(sent=one.next - 1))

    def _refuse(self, name: str, error: Exception) -> None:
        if self._refused.get(name, ("",))[0] != str(error):
            log.warning("channel %s is not sent, and tried again: %s", name, error)
        away = isinstance(error, KafkaException | DeliveryError)
        self._refused[name] = str(error), time.monotonic() + (RETRY_UNAVAILABLE if away else RETRY_REFUSED)

    def _close_ended(self, positions: Mapping[int, Position]) -> None:
        """Close senders that ended `LINGER` ago, or whose channel has a sender again."""
        now = time.monotonic()
        for one in [*self._ended]:
            if any(at.next < one.offsets(number).stop for number, at in positions.items()):
                continue
            one.ended = one.ended or now
            again = any(
                other.packer.channel.number == one.packer.channel.number for other in self._senders.values()
            )
            if again or now - one.ended > LINGER:
                self._ended.remove(one)
                one.close()


def _carriage(mapping: ChannelMapping) -> tuple[str | None, str, bool]:
    return mapping.group, mapping.condition, mapping.full


def _close(opening: "Future[GroupSender]") -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()
