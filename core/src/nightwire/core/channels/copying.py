"""A source's channels: what it wrote is judged, and copied to the channels' topics.

It is a side line of the source, with a producer of its own: what goes wrong here is never the
source's, and costs only speed, for readers fetch from the topic what nobody vouches for.  Full
batches are copied by the thread that delivers them, for two that hand over alert by alert spend
more on that; what comes slowly is copied by a thread of its own.
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

from nightwire.core.channels.in_process import WRITTEN_HERE, size_of
from nightwire.core.channels.table import ChannelFollower
from nightwire.core.channels.vouching import HEADER, MARK, Runs, Vouch, number_of
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

GATHER, MARKS, LOOK, AGAIN = 0.05, 0.2, 0.5, 5.0
"""Time in which records gather, to be judged together; until it is said of them that they are no
channel's; between two looks at which channels there are; after one that failed. [s]"""
AT_ONCE = 1_024
"""Most records that are judged together."""
MOST_WAITING = 64 << 20
"""Most that waits to be judged; what is beyond is nobody's, and readers fetch it. [byte]"""
MOST_TOLD = 100
"""Most channels that are not made and told, each once."""
GOODBYE = 2.0
"""Longest wait at the end. [s]"""
COPIES: dict[str, Any] = {
    "enable_idempotence": False,
    "acks": 1,
    "delivery_timeout_ms": 10_000,
    "delivery_report_only_error": True,
}
"""What is lost is repaired, and what comes twice is dropped: so nothing is paid against either."""


@dataclass(frozen=True)
class OneSchema:
    """The registry of those who judge what one source writes: all has the schema of one codec."""

    known: Codec

    def codec(self, _schema_id: int) -> Codec:
        """Return the codec."""
        return self.known


class _Made(NamedTuple):
    name: str
    topic: str
    number: int


def _both(
    then: Delivered | None, take: Callable[[Message, Headers], None], headers: Headers, message: Message
) -> None:
    if then is not None:
        then(message)
    take(message, headers)


class ChannelCopies:
    """The channels of what a source writes to *topic*, from `start` to `close`.

    Args:
        bootstrap: ``HOST:PORT[,HOST:PORT…]``.
        topic: Where the source writes.
        of_survey: Whose alerts.
        registry: Knows the schemas of what it writes.

    Attributes:
        active: Whether there are channels.
        copied: Records copied, by channel.
        lost: Copies that Kafka did not take, and records that were not judged.
    """

    def __init__(self, bootstrap: str, topic: str, of_survey: str, registry: Any) -> None:
        self._bootstrap, self._topic, self._survey, self._registry = bootstrap, topic, of_survey, registry
        self._place = bootstrap, topic
        self.active, self.copied, self.lost = False, Counter[str](), 0
        self._taken, self._done = 0, 0  # [byte]
        self._waiting: deque[Waiting | None] = deque()  # None where a transaction ended
        self._wake, self._leave, self._left = threading.Event(), threading.Event(), threading.Event()
        self._lock, self._take = threading.Lock(), self.delivered
        self._thread = threading.Thread(target=self._run, name="channels", daemon=True)
        self._judges: ChannelJudges | None = None
        self._made: list[_Made] = []
        self._said: list[tuple[str, int]] = []  # the channels, as they were last seen
        self._runs: dict[int, Runs] = {}  # by partition
        self._untold, self._why = False, ""
        self._told = set[str]()  # channels that are not made
        self._marks_at = self._look_at = float("-inf")

    @property
    def names(self) -> list[str]:
        """The channels that are copied now."""
        return [one.name for one in self._made]

    def start(self) -> None:
        """Begin to follow which channels there are, and tell readers here of records; only once."""
        if self._thread.ident is not None:
            return
        WRITTEN_HERE.begin(self._bootstrap, self._topic)
        self._thread.start()

    def delivered(self, message: Message, headers: Headers) -> None:
        """Take a record that Kafka has, and its *headers*, which confluent-kafka leaves out."""
        if self._taken - self._done > MOST_WAITING:
            self.lost += 1
            return
        size = size_of(message, headers)
        self._taken += size
        self._waiting.append((message, headers, size))
        if len(self._waiting) >= AT_ONCE and self._lock.acquire(blocking=False):
            try:
                self._guarded(self._copy_all)
            finally:
                self._lock.release()
        elif not self._wake.is_set():
            self._wake.set()

    def committed(self, written: Sequence[Written]) -> None:
        """Take all that a transaction has written, now that it is over."""
        for one in written:
            self.delivered(*one)
        self._waiting.append(None)

    def after(
        self, then: Delivered | None, headers: Headers, take: Callable[[Message, Headers], None] | None = None
    ) -> Delivered | None:
        """Return what is called with an acknowledged record: *then*, and *take*, or `delivered`."""
        if take is None and WRITTEN_HERE.heard(self._place):
            then = partial(_both, then, self._hand_on, headers) if then or headers else self._hand_on
        return partial(_both, then, take or self._take, headers) if self.active else then

    def _hand_on(self, message: Message, headers: Headers = ()) -> None:
        WRITTEN_HERE.deliver(self._place, message, headers)

    def close(self) -> None:
        """Copy what waits, for a moment; again it does nothing."""
        if self._leave.is_set() or self._thread.ident is None:
            return
        WRITTEN_HERE.end(self._bootstrap, self._topic)
        self._leave.set()
        self._wake.set()
        if self._thread.is_alive():
            self._left.wait(2 * GOODBYE)

    def _run(self) -> None:
        with ChannelFollower(self._bootstrap) as channels:
            while not self._leave.is_set():
                self._wake.wait(MARKS if self._untold else LOOK)
                with self._lock:
                    self._guarded(lambda: self._follow(channels))
                self._leave.wait(GATHER if self._waiting else 0.0)
                self._wake.clear()
                with self._lock:
                    self._guarded(self._copy_all)
            with self._lock:
                self._guarded(self._finish)
            self._left.set()

    def _guarded(self, work: Callable[[], None]) -> None:
        """Do *work*; where it fails nothing is vouched for."""
        try:
            work()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is never the source's
            self._runs.clear()
            if (why := str(error)) != self._why:
                self._why = why
                log.warning("channels of %s: %s", self._topic, why)

    def _follow(self, channels: ChannelFollower) -> None:
        """Copy to the channels that there are now."""
        if (now := time.monotonic()) < self._look_at:
            return
        self._look_at = now + LOOK
        self._tell_refused(channels.turned_away(self._topic))
        held = [one for one in channels.of(self._topic) if one.mapping.derived]
        if (said := [(one.mapping.key, one.offset) for one in held]) == self._said:
            return
        from nightwire.core.channels.judging import ChannelJudges  # NumPy takes a while to import

        self._look_at = now + AGAIN
        there = admin(self._bootstrap).list_topics(timeout=AGAIN).topics if held else {}
        made = [one.mapping for one in held if channel(self._topic, one.mapping.name) in there]
        self._mark()
        self._runs.clear()  # what was written until now was not judged by all of them
        self._judges = judges = ChannelJudges(made, self._survey, self._registry)
        self._tell_refused(judges.refused)
        self._made = [
            _Made(one.name, channel(self._topic, one.name), number_of(one)) for one in judges.mappings
        ]
        self.active = bool(self._made)
        log.info("channels of %s: %s", self._topic, ", ".join(self.names) or "none")
        if len(made) == len(held):
            self._said, self._look_at = said, now + LOOK

    def _tell_refused(self, refused: Mapping[str, str]) -> None:
        for key in [one for one in refused if one not in self._told][: MOST_TOLD - len(self._told)]:
            self._told.add(key)
            log.warning("channel %r is not made: %s", key, refused[key])

    def _copy_all(self) -> None:
        while batch := [self._waiting.popleft() for _ in range(min(AT_ONCE, len(self._waiting)))]:
            self._done += sum(one[2] for one in batch if one is not None)
            if self._judges is not None and self.active:
                self._copy(batch, self._judges)
        if self._untold and time.monotonic() >= self._marks_at:
            self._mark()
        if self.active:
            self._producer.poll(0)

    def _copy(self, batch: Sequence[Waiting | None], judges: "ChannelJudges") -> None:
        wanted: dict[int, list[_Made]] = {}
        own = judges.judge([one[0].value() or b"" for one in batch if one is not None])
        for made, passed in zip(self._made, own, strict=True):
            for at in passed:
                wanted.setdefault(at, []).append(made)
        at = 0
        for one in batch:
            if one is None:
                for runs in self._runs.values():
                    runs.transaction_ended()
                continue
            number, offset = one[0].partition() or 0, one[0].offset() or 0
            if (of_partition := self._runs.get(number)) is None:
                of_partition = self._runs[number] = Runs()
            of_partition.note(offset)
            for made in wanted.get(at, ()):
                said = Vouch(made.number, offset, of_partition.tell(made.number))
                self._produce(made, number, said, one)
            at += 1
        self._untold = True

    def _mark(self) -> None:
        """Tell each channel of what was written and is not its own."""
        for number, runs in self._runs.items():
            for made in self._made:
                if ranges := runs.tell(made.number):
                    self._produce(made, number, Vouch(made.number, MARK, ranges))
            runs.forget_told()
        self._untold, self._marks_at = False, time.monotonic() + MARKS

    def _produce(self, made: _Made, number: int, said: Vouch, written: Waiting | None = None) -> None:
        own: Any = [(HEADER, said.encoded())]
        try:
            if written is None:
                self._producer.produce(made.topic, partition=number, headers=own)
                return
            record, headers, _ = written
            self._producer.produce(
                made.topic, record.value(), record.key(), number, on_delivery=self._failed,
                timestamp=record.timestamp()[1], headers=[*headers, *own],
            )  # fmt: skip
            self.copied[made.name] += 1
        except (BufferError, KafkaException):
            self.lost += 1

    @cached_property
    def _producer(self) -> Producer:
        return producer(self._bootstrap, **COPIES)

    def _failed(self, error: KafkaError | None, _message: Message) -> None:
        self.lost += error is not None

    def _finish(self) -> None:
        self._copy_all()
        self._mark()
        if self.active:
            self._producer.flush(GOODBYE)
            log.info("channels of %s: copied %s, lost %d", self._topic, dict(self.copied), self.lost)
