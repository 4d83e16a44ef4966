"""A writer that goes on while Kafka is away: records go to disk, and to Kafka in their order later.

Records are handed to Kafka until one waits too long for its acknowledgement.  Then all
unacknowledged ones are put into the spool, and later ones behind them; a thread sends them in their
order, and they leave the spool when they are acknowledged.  When it is empty, records go to Kafka
directly again.
"""

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from confluent_kafka import KafkaError, Message, Producer

from nightwire.core.kafka import TRANSIENT_ERRORS, Record, Writer
from nightwire.producer.spool.in_flight import InFlight
from nightwire.producer.spool.spool import Ack, Spool, SpoolError
from nightwire.producer.visits.counts import VisitCounts

log = logging.getLogger("nightwire.producer")

UNDELIVERED_ERRORS = TRANSIENT_ERRORS | {
    KafkaError._MSG_TIMED_OUT,
    KafkaError._PURGE_QUEUE,
    KafkaError.NOT_ENOUGH_REPLICAS,
    KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
}
"""Failed deliveries that are repeated from the spool; any other is an error of the record."""
PATIENCE = 2.0
"""How long Kafka may be silent before alerts go to disk. [s]"""
WINDOW = 24 << 20
"""Bytes from the spool that are in flight at a time."""
POLL_INTERVAL = 0.02
"""Time between two polls for acknowledgements while the spool is not empty. [s]"""

Closing = Callable[[VisitCounts], Iterable[Record]]


class _SilentError(Exception):
    """Kafka is silent, and librdkafka's queue is full."""


class SpoolingWriter(Writer):
    """Write records, at least once, in order per key; to disk while Kafka is away.

    `flush` returns when every record is acknowledged or safely on disk.  While the spool has
    records a thread sends them.  Later calls fail where Kafka refuses a record itself, or the spool
    breaks.

    Args:
        producer: A ``confluent_kafka.Producer``.
        spool: Where records wait; those that an earlier process left in it are sent first.
        patience: How long Kafka may be silent before records go to disk. [s]
    """

    def __init__(self, producer: Producer, spool: Spool, *, patience: float = PATIENCE) -> None:
        super().__init__(producer)
        self._spool, self._patience = spool, patience
        self._closing: Closing = lambda _ledger: ()
        self._lock = threading.RLock()
        self._in_flight = InFlight()
        self._acks: list[Ack] = []
        self._sent = 0
        self._failed = False
        self._leave = threading.Event()
        self._thread: threading.Thread | None = None
        self.spooling = False
        self.rewinds = 0
        """How often the spool was sent from its beginning again after failed deliveries."""

    def begin(self, closing: Closing) -> None:
        """Send the records that an earlier process left in the spool.

        Args:
            closing: Makes the records that close a visit.
        """
        self._closing = closing
        if not self._spool.is_empty:
            log.warning("%d records of an earlier process are in %s", len(self._spool), self._spool.path)
            self._start()

    def put(self, record: Record, *, visit: int | None = None) -> None:
        """Queue *record*, which may be an alert of *visit*.

        ``on_delivered`` is not called for a record that went through the spool.

        Raises:
            SpoolFullError: Kafka is away and the spool is full; this record was not taken.
            DeliveryError: Kafka refused an earlier record itself.
        """
        with self._lock:
            self._raise_failure()
            self._check_silence()
            if self.spooling or not self._hand_over(record, visit):
                self._spool.append([(record, visit)])
        self._send_again()

    def flush(self) -> None:
        """Wait until every record is acknowledged by Kafka, or safely on disk.

        Raises:
            DeliveryError: Kafka refused one itself.
        """
        while not self.spooling and self._in_flight.direct:
            self.serve(0.1)
            self._raise_failure()
            self._check_silence()
        if self.spooling:
            with self._lock:
                self._raise_failure()
                self._spool.sync()
        self._send_again()
        self._raise_failure()

    def serve(self, timeout: float) -> None:
        """Receive acknowledgements for at most *timeout* [s]; while spooling, the thread does."""
        with self._lock:
            if not self.spooling:
                super().serve(timeout)
                return
        self._leave.wait(timeout)

    def ended(self, counts: VisitCounts) -> bool:
        """Return whether the visit of *counts* is closed later, behind its spooled records."""
        with self._lock:
            if self.spooling:
                self._spool.end(counts)
            return self.spooling

    def drained(self, patience: float = 30.0) -> bool:
        """Wait until the spool is empty, for as long as Kafka takes records; return whether it is.

        Args:
            patience: How long Kafka may be silent meanwhile. [s]
        """
        began = self._clock()
        while self.spooling and self._failure is None:
            if min(self.silence, self._clock() - began) > patience:
                break
            self._leave.wait(POLL_INTERVAL)
        return not self.spooling

    def close(self, patience: float = 30.0) -> None:
        """Send the spooled records for as long as Kafka takes them, and close the spool.

        Args:
            patience: How long Kafka may be silent meanwhile. [s]
        """
        self.drained(patience)
        self._leave.set()
        if self._thread is not None:
            self._thread.join()
        if len(self._spool):
            log.warning("%d records stay in %s for the next writer", len(self._spool), self._spool.path)
        self._spool.close()

    def _queue(self, record: Record, *, alone: bool = False) -> None:
        """Hand *record* to librdkafka; a record that comes by `write` has no visit."""
        if alone or record.on_failed is not None:
            super()._queue(record, alone=alone)
        else:
            self.put(record)

    def _hand_over(self, record: Record, visit: int | None) -> bool:
        """Hand *record* to librdkafka; return False when its full queue made spooling begin."""
        token = self._in_flight.add(record, visit)
        try:
            super()._queue(self._with_callbacks(token, record))
        except _SilentError:
            self._in_flight.take(token)
            self._begin_spooling()
            return False
        self.serve(0)
        return True

    def _with_callbacks(self, token: int, record: Record) -> Record:
        """Return *record* with our callbacks; a refusal for its size is handled or a failure."""
        handled = record.on_refused is not None or not self._in_flight.is_direct(token)
        return replace(
            record,
            on_delivered=partial(self._on_acknowledged, token),
            on_failed=partial(self._on_failure, token),
            on_refused=partial(self._on_too_large, token) if handled else None,
        )

    def _full(self) -> None:
        super()._full()
        if self.silence > self._patience:
            raise _SilentError

    def _await_all(self) -> None:
        with self._lock:
            super()._await_all()

    def _check_silence(self) -> None:
        """Begin to spool when Kafka has been silent for too long."""
        if not self.spooling and self.silence > self._patience:
            self._begin_spooling()

    def _begin_spooling(self) -> None:
        with self._lock:
            log.warning("Kafka does not acknowledge: alerts go to %s", self._spool.path)
            numbers = self._spool.append(self._in_flight.direct)
            self._in_flight.spooled_as(numbers)
            self._sent = max(numbers, default=0)
            self._start()

    def _start(self) -> None:
        self.spooling = True
        self._thread = threading.Thread(target=self._drain, name="nightwire-spool", daemon=True)
        self._thread.start()

    def _on_acknowledged(self, token: int, message: Message) -> None:
        with self._lock:
            found = self._in_flight.take(token)
            if isinstance(found, int):
                self._acks.append(Ack(found, message.partition() or 0, message.offset() or 0))
                return
        if found.on_delivered is not None:
            found.on_delivered(message)

    def _on_failure(self, token: int, error: KafkaError) -> bool:
        """Leave an undelivered record in the spool; return False where Kafka refused it itself."""
        if error.code() not in UNDELIVERED_ERRORS:
            return False
        with self._lock:
            if self._in_flight.is_direct(token) and not self._spooling_began():
                return True
            self._in_flight.take(token)
            if not self._failed:  # later records must not overtake this one
                self._failed = True
                self._producer.purge(in_queue=True, in_flight=False, blocking=False)
        return True

    def _spooling_began(self) -> bool:
        """Begin to spool; keep an error of that for later calls, because callbacks cannot raise."""
        try:
            self._begin_spooling()
        except SpoolError as error:
            self._fail(str(error))
            return False
        return True

    def _on_too_large(self, token: int, error: KafkaError) -> None:
        with self._lock:
            found = self._in_flight.take(token)
            if isinstance(found, int):
                if self._spool.refuse(found, "too-large"):
                    log.warning("refused: record %d of the spool: %s", found, error.str())
                else:
                    self._fail(f"record {found} of {self._spool.path}: {error.str()}")
                return
        if found.on_refused is not None:
            found.on_refused(error)

    def _drain(self) -> None:
        """Send the spooled records until there are none; the body of the thread."""
        try:
            while self.spooling and self._thread is threading.current_thread():
                if self._leave.wait(POLL_INTERVAL):
                    return
                with self._lock:
                    self._step()
        except Exception as error:  # noqa: BLE001  (the thread's outermost loop: later calls raise it)
            log.error("the spool is not sent any more: %s", error)  # noqa: TRY400
            self._fail(str(error) or type(error).__name__)

    def _step(self) -> None:
        self._producer.poll(0)
        self._send_again()
        acks, self._acks = self._acks, []
        self._spool.delivered(acks)
        for counts in self._spool.close_visits(self._closing):
            log.info("visit %d left the spool: %d acknowledged", counts.visit, counts.acknowledged)
        if self._failed and not self._in_flight.has_spooled:
            self._failed, self._sent = False, 0
            self.rewinds += 1
        if not self._failed:
            self._send()
        if self._spool.is_empty and not self._in_flight.has_spooled:
            self._spool.shrink()
            self.spooling = False
            log.info("the spool is empty")

    def _send(self) -> None:
        room = WINDOW - self._in_flight.spooled_bytes
        if room < WINDOW // 2:
            return
        for seq, record in self._spool.after(self._sent, room):
            token = self._in_flight.add_spooled(seq, len(record.value or b""))
            try:
                super()._queue(self._with_callbacks(token, record))
            except _SilentError:  # librdkafka's queue is full: the record stays in the spool
                self._in_flight.take(token)
                return
            self._sent = seq
