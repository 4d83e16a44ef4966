"""A source's channels: its records are evaluated, and copied to the channels' topics.

The copier has a producer of its own, and its errors never reach the source: they cost speed alone,
for readers fetch from the topic the offsets that no header covers.  Full batches are copied by the
thread that delivers them, for handing over alert by alert costs more; others by a thread of the
copier.
"""

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from nightwire.core.channels.coverage import HEADER, MARK, Coverage, WrittenRanges, number_of
from nightwire.core.channels.in_process import LOCAL_DELIVERY, size_of
from nightwire.core.channels.table import ChannelFollower
from nightwire.core.kafka import Headers, admin, producer
from nightwire.schemas import Codec
from nightwire.schemas.topics import channel

if TYPE_CHECKING:
    from nightwire.core.channels.judging import ChannelJudges

log = logging.getLogger("nightwire.channels")

Delivered = Callable[[Message], None]
Written = tuple[Message, Headers]
Waiting = tuple[Message, Headers, int]
"""With its size. [byte]"""

GATHER_TIME, MARKER_INTERVAL, FOLLOW_INTERVAL, RETRY_INTERVAL = 0.05, 0.2, 0.5, 5.0
"""Time in which records gather, to be evaluated together; to the marker that covers them; between
two checks of the channels; after one that failed. [s]"""
MAX_BATCH = 1_024
"""Most records that are evaluated together."""
MAX_WAITING = 64 << 20
"""Most that waits to be evaluated; no header covers the rest, and readers fetch it. [byte]"""
MAX_LOGGED = 100
"""Most refused channels that are logged, each once."""
CLOSE_TIMEOUT = 2.0
"""Half of the longest wait at the end. [s]"""
PROPERTIES: dict[str, Any] = {
    "enable_idempotence": False,
    "acks": 1,
    "delivery_timeout_ms": 10_000,
    "delivery_report_only_error": True,
}
"""Readers repair lost copies and drop double ones: so neither is prevented here."""


@dataclass(frozen=True)
class OneSchema:
    """The registry of a source whose records all have the schema of one codec."""

    known: Codec

    def codec(self, _schema_id: int) -> Codec:
        """Return the codec."""
        return self.known


class _Channel(NamedTuple):
    name: str
    topic: str
    number: int


def _call_both(
    then: Delivered | None, take: Callable[[Message, Headers], None], headers: Headers, message: Message
) -> None:
    if then is not None:
        then(message)
    take(message, headers)


class ChannelCopies:
    """Copies a source's records of *topic* to its channels, from `start` to `close`.

    Args:
        bootstrap: ``HOST:PORT[,HOST:PORT…]``.
        topic: The source's.
        of_survey: Whose alerts.
        registry: Knows the schemas of its records.

    Attributes:
        active: Whether there are channels.
        copied: Records copied, by channel.
        lost: Copies that Kafka did not take, and records that were not evaluated.
    """

    def __init__(self, bootstrap: str, topic: str, of_survey: str, registry: Any) -> None:
        self._bootstrap, self._topic, self._survey, self._registry = bootstrap, topic, of_survey, registry
        self._topic_key = bootstrap, topic
        self.active, self.copied, self.lost = False, Counter[str](), 0
        self._bytes_in, self._bytes_out = 0, 0  # [byte]
        self._waiting: deque[Waiting | None] = deque()  # None where a transaction ended
        self._wake, self._stopping, self._stopped = threading.Event(), threading.Event(), threading.Event()
        self._lock, self._take = threading.Lock(), self.delivered
        self._thread = threading.Thread(target=self._run, name="channels", daemon=True)
        self._judges: ChannelJudges | None = None
        self._copied_to: list[_Channel] = []
        self._versions: list[tuple[str, int]] = []  # keys and offsets of the followed mappings
        self._runs: dict[int, WrittenRanges] = {}  # by partition
        self._unreported, self._why = False, ""
        self._reported = set[str]()  # keys of refused channels
        self._markers_due = self._follow_due = float("-inf")

    @property
    def names(self) -> list[str]:
        """The channels that are copied now."""
        return [one.name for one in self._copied_to]

    def start(self) -> None:
        """Begin to follow the channels, and to deliver records to readers in this process; once."""
        if self._thread.ident is not None:
            return
        LOCAL_DELIVERY.add_writer(self._bootstrap, self._topic)
        self._thread.start()

    def delivered(self, message: Message, headers: Headers) -> None:
        """Queue an acknowledged record with its *headers*, which confluent-kafka leaves out."""
        if self._bytes_in - self._bytes_out > MAX_WAITING:
            self.lost += 1
            return
        size = size_of(message, headers)
        self._bytes_in += size
        self._waiting.append((message, headers, size))
        if len(self._waiting) >= MAX_BATCH and self._lock.acquire(blocking=False):
            try:
                self._guarded(self._copy_all)
            finally:
                self._lock.release()
        elif not self._wake.is_set():
            self._wake.set()

    def committed(self, written: Sequence[Written]) -> None:
        """Queue the records of a committed transaction."""
        for one in written:
            self.delivered(*one)
        self._waiting.append(None)

    def after(
        self, then: Delivered | None, headers: Headers, take: Callable[[Message, Headers], None] | None = None
    ) -> Delivered | None:
        """Return a callback for an acknowledged record: *then*, and *take*, or `delivered`."""
        if take is None and LOCAL_DELIVERY.has_readers(self._topic_key):
            here = self._deliver_here
            then = partial(_call_both, then, here, headers) if then or headers else here
        return partial(_call_both, then, take or self._take, headers) if self.active else then

    def _deliver_here(self, message: Message, headers: Headers = ()) -> None:
        LOCAL_DELIVERY.deliver(self._topic_key, message, headers)

    def close(self) -> None:
        """Copy waiting records, within twice `CLOSE_TIMEOUT`; a second call does nothing."""
        if self._stopping.is_set() or self._thread.ident is None:
            return
        LOCAL_DELIVERY.remove_writer(self._bootstrap, self._topic)
        self._stopping.set()
        self._wake.set()
        if self._thread.is_alive():
            self._stopped.wait(2 * CLOSE_TIMEOUT)

    def _run(self) -> None:
        with ChannelFollower(self._bootstrap) as channels:
            while not self._stopping.is_set():
                self._wake.wait(MARKER_INTERVAL if self._unreported else FOLLOW_INTERVAL)
                with self._lock:
                    self._guarded(lambda: self._follow(channels))
                self._stopping.wait(GATHER_TIME if self._waiting else 0.0)
                self._wake.clear()
                with self._lock:
                    self._guarded(self._copy_all)
            with self._lock:
                self._guarded(self._finish)
            self._stopped.set()

    def _guarded(self, work: Callable[[], None]) -> None:
        """Do *work*; after an error earlier records are never covered."""
        try:
            work()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is never the source's
            self._runs.clear()
            if (why := str(error)) != self._why:
                self._why = why
                log.warning("channels of %s: %s", self._topic, why)

    def _follow(self, channels: ChannelFollower) -> None:
        """Read the current channels, and copy to these from now on."""
        if (now := time.monotonic()) < self._follow_due:
            return
        self._follow_due = now + FOLLOW_INTERVAL
        self._log_refused(channels.refusals(self._topic))
        held = [one for one in channels.of(self._topic) if one.mapping.derived]
        if (versions := [(one.mapping.key, one.offset) for one in held]) == self._versions:
            return
        from nightwire.core.channels.judging import ChannelJudges  # NumPy takes a while to import

        self._follow_due = now + RETRY_INTERVAL
        there = admin(self._bootstrap).list_topics(timeout=RETRY_INTERVAL).topics if held else {}
        existing = [one.mapping for one in held if channel(self._topic, one.mapping.name) in there]
        self._send_markers()
        self._runs.clear()  # earlier records were not evaluated for all of them
        self._judges = judges = ChannelJudges(existing, self._survey, self._registry)
        self._log_refused(judges.refused)
        self._copied_to = [
            _Channel(one.name, channel(self._topic, one.name), number_of(one)) for one in judges.mappings
        ]
        self.active = bool(self._copied_to)
        log.info("channels of %s: %s", self._topic, ", ".join(self.names) or "none")
        if len(existing) == len(held):
            self._versions, self._follow_due = versions, now + FOLLOW_INTERVAL

    def _log_refused(self, refused: Mapping[str, str]) -> None:
        for key in [one for one in refused if one not in self._reported][: MAX_LOGGED - len(self._reported)]:
            self._reported.add(key)
            log.warning("channel %r is not made: %s", key, refused[key])

    def _copy_all(self) -> None:
        while batch := [self._waiting.popleft() for _ in range(min(MAX_BATCH, len(self._waiting)))]:
            self._bytes_out += sum(one[2] for one in batch if one is not None)
            if self._judges is not None and self.active:
                self._copy(batch, self._judges)
        if self._unreported and time.monotonic() >= self._markers_due:
            self._send_markers()
        if self.active:
            self._producer.poll(0)

    def _copy(self, batch: Sequence[Waiting | None], judges: "ChannelJudges") -> None:
        wanted: dict[int, list[_Channel]] = {}
        own = judges.judge([one[0].value() or b"" for one in batch if one is not None])
        for target, passed in zip(self._copied_to, own, strict=True):
            for at in passed:
                wanted.setdefault(at, []).append(target)
        at = 0
        for one in batch:
            if one is None:
                for runs in self._runs.values():
                    runs.transaction_ended()
                continue
            number, offset = one[0].partition() or 0, one[0].offset() or 0
            if (of_partition := self._runs.get(number)) is None:
                of_partition = self._runs[number] = WrittenRanges()
            of_partition.add(offset)
            for target in wanted.get(at, ()):
                coverage = Coverage(target.number, offset, of_partition.take_unreported(target.number))
                self._produce(target, number, coverage, one)
            at += 1
        self._unreported = True

    def _send_markers(self) -> None:
        """Write markers that cover the records which are not the channel's."""
        for number, runs in self._runs.items():
            for target in self._copied_to:
                if ranges := runs.take_unreported(target.number):
                    self._produce(target, number, Coverage(target.number, MARK, ranges))
            runs.drop_reported()
        self._unreported, self._markers_due = False, time.monotonic() + MARKER_INTERVAL

    def _produce(self, target: _Channel, number: int, coverage: Coverage, one: Waiting | None = None) -> None:
        own: Any = [(HEADER, coverage.encoded())]
        try:
            if one is None:
                self._producer.produce(target.topic, partition=number, headers=own)
                return
            record, headers, _ = one
            self._producer.produce(
                target.topic, record.value(), record.key(), number, on_delivery=self._failed,
                timestamp=record.timestamp()[1], headers=[*headers, *own],
            )  # fmt: skip
            self.copied[target.name] += 1
        except (BufferError, KafkaException):
            self.lost += 1

    @cached_property
    def _producer(self) -> Producer:
        return producer(self._bootstrap, **PROPERTIES)

    def _failed(self, error: KafkaError | None, _message: Message) -> None:
        self.lost += error is not None

    def _finish(self) -> None:
        self._copy_all()
        self._send_markers()
        if self.active:
            self._producer.flush(CLOSE_TIMEOUT)
            log.info("channels of %s: copied %s, lost %d", self._topic, dict(self.copied), self.lost)
