"""A writer that goes on while Kafka is away: records go to disk, and from there to Kafka in their order.

Records are handed to Kafka until one waits too long for its acknowledgement.  Then all that wait are put
into the spool, and whatever is written goes behind them; from there they are sent in their order, and leave
the spool when they are acknowledged.  When it is empty, records go to Kafka directly again.
"""

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from confluent_kafka import KafkaError, Message, Producer

from nightwire.core.kafka import TRANSIENT_ERRORS, DeliveryError, Record, Writer
from nightwire.producer.spool.in_flight import InFlight
from nightwire.producer.spool.spool import Ack, Spool, SpoolError
from nightwire.producer.visits.counts import VisitCounts

log = logging.getLogger("nightwire.producer")

AWAY = TRANSIENT_ERRORS | {
    KafkaError._MSG_TIMED_OUT,
    KafkaError._PURGE_QUEUE,
    KafkaError.NOT_ENOUGH_REPLICAS,
    KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
}
"""Failed deliveries that are tried again from the spool; any other is an error of the record."""
PATIENCE = 2.0
"""How long Kafka may be silent before alerts go to disk. [s]"""
WINDOW = 24 << 20
"""Bytes from the spool that are on their way at a time."""
STEP = 0.02
"""Time between two looks at what was acknowledged, while there is something in the spool. [s]"""

Closing = Callable[[VisitCounts], Iterable[Record]]


class _SilentError(Exception):
    """Kafka is silent, and librdkafka's queue is full."""


class SpoolingWriter(Writer):
    """Write records, at least once, in order per key; to disk while Kafka is away.

    `flush` returns when every record is acknowledged or safely on disk.  While something is in the spool a
    thread sends it.  Only records that Kafka refuses for what they are make later calls fail.

    Args:
        producer: A ``confluent_kafka.Producer``.
        spool: Where records wait; what an earlier process left in it is sent first.
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
        """How often the spool was sent from its beginning again, because deliveries failed."""

    def begin(self, closing: Closing) -> None:
        """Send what an earlier process left in the spool.

        Args:
            closing: Gives the records that close a visit.
        """
        self._closing = closing
        if not self._spool.is_empty:
            log.warning("%d records of an earlier process are in %s", len(self._spool), self._spool.path)
            self._start()

    def put(self, record: Record, *, visit: int | None = None) -> None:
        """Queue *record*, an alert of *visit* where it has one.

        ``on_delivered`` is not called for a record that went through the spool.

        Raises:
            SpoolFullError: Kafka is away and the spool is full; this record was not taken.
            DeliveryError: Kafka refused an earlier record for what it is.
        """
        with self._lock:
            self._raise_failure()
            self._look()
            if self.spooling or not self._handed_over(record, visit):
                self._spool.append([(record, visit)])
        self._send_again()

    def flush(self) -> None:
        """Wait until every record is acknowledged by Kafka, or safely on disk.

        Raises:
            DeliveryError: Kafka refused one for what it is.
        """
        while not self.spooling and self._in_flight.direct:
            self.serve(0.1)
            self._raise_failure()
            self._look()
        if self.spooling:
            with self._lock:
                self._raise_failure()
                self._spool.sync()
        self._send_again()
        self._raise_failure()

    def serve(self, timeout: float) -> None:
        """Take in acknowledgements, for at most *timeout* [s]; the thread does, if there is one."""
        with self._lock:
            if not self.spooling:
                super().serve(timeout)
                return
        self._leave.wait(timeout)

    def ended(self, ledger: VisitCounts) -> bool:
        """Return whether the visit of *ledger*, which has ended, is closed later, behind what is spooled."""
        with self._lock:
            if self.spooling:
                self._spool.end(ledger)
            return self.spooling

    def drained(self, patience: float = 30.0) -> bool:
        """Wait until the spool is empty, for as long as Kafka takes what is in it; return whether it is.

        Args:
            patience: How long Kafka may be silent meanwhile. [s]
        """
        began = self._clock()
        while self.spooling and self._failure is None:
            if min(self.silence, self._clock() - began) > patience:
                break
            self._leave.wait(STEP)
        return not self.spooling

    def close(self, patience: float = 30.0) -> None:
        """Send what is in the spool for as long as Kafka takes it, and close the spool.

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
        """Hand *record* to librdkafka; those that come by `write` are of no visit."""
        if alone or record.on_failed is not None:
            super()._queue(record, alone=alone)
        else:
            self.put(record)

    def _handed_over(self, record: Record, visit: int | None) -> bool:
        """Hand *record* to librdkafka; return False when its queue stayed full, and we went to disk."""
        token = self._in_flight.add(record, visit)
        try:
            super()._queue(self._watched(token, record))
        except _SilentError:
            self._in_flight.take(token)
            self._to_disk()
            return False
        self.serve(0)
        return True

    def _watched(self, token: int, record: Record) -> Record:
        """Return *record* so that we hear what becomes of it; whose size nobody asked about is an error."""
        asked = record.on_refused is not None or not self._in_flight.is_direct(token)
        return replace(
            record,
            on_delivered=partial(self._acknowledged, token),
            on_failed=partial(self._away, token),
            on_refused=partial(self._too_large, token) if asked else None,
        )

    def _full(self) -> None:
        super()._full()
        if self.silence > self._patience:
            raise _SilentError

    def _await_all(self) -> None:
        with self._lock:
            super()._await_all()

    def _look(self) -> None:
        """Go to disk when Kafka has been silent for too long."""
        if not self.spooling and self.silence > self._patience:
            self._to_disk()

    def _to_disk(self) -> None:
        with self._lock:
            log.warning("Kafka does not acknowledge: alerts go to %s", self._spool.path)
            numbers = self._spool.append(self._in_flight.direct)
            self._in_flight.now_spooled(numbers)
            self._sent = max(numbers, default=0)
            self._start()

    def _start(self) -> None:
        self.spooling = True
        self._thread = threading.Thread(target=self._drain, name="nightwire-spool", daemon=True)
        self._thread.start()

    def _acknowledged(self, token: int, message: Message) -> None:
        with self._lock:
            taken = self._in_flight.take(token)
            if isinstance(taken, int):
                self._acks.append(Ack(taken, message.partition() or 0, message.offset() or 0))
                return
        if taken.on_delivered is not None:
            taken.on_delivered(message)

    def _away(self, token: int, error: KafkaError) -> bool:
        """Leave a record whose delivery failed in the spool; return False for one that is at fault itself."""
        if error.code() not in AWAY:
            return False
        with self._lock:
            if self._in_flight.is_direct(token) and not self._kept():
                return True
            self._in_flight.take(token)
            if not self._failed:  # the others behind it must not overtake it
                self._failed = True
                self._producer.purge(in_queue=True, in_flight=False, blocking=False)
        return True

    def _kept(self) -> bool:
        """Go to disk; where that fails, keep the error for later calls, because callbacks cannot raise."""
        try:
            self._to_disk()
        except SpoolError as error:
            self._fail(str(error))
            return False
        return True

    def _too_large(self, token: int, error: KafkaError) -> None:
        with self._lock:
            taken = self._in_flight.take(token)
            if isinstance(taken, int):
                if self._spool.refuse(taken, "too-large"):
                    log.warning("refused: record %d of the spool: %s", taken, error.str())
                else:
                    self._fail(f"record {taken} of {self._spool.path}: {error.str()}")
                return
        if taken.on_refused is not None:
            taken.on_refused(error)

    def _drain(self) -> None:
        """Send what is in the spool until it is empty; the body of the thread."""
        try:
            while self.spooling and self._thread is threading.current_thread():
                if self._leave.wait(STEP):
                    return
                with self._lock:
                    self._step()
        except (DeliveryError, SpoolError) as error:
            log.error("the spool is not sent any more: %s", error)  # noqa: TRY400
            self._fail(str(error))

    def _step(self) -> None:
        self._producer.poll(0)
        self._send_again()
        acks, self._acks = self._acks, []
        self._spool.delivered(acks)
        for ledger in self._spool.close_visits(self._closing):
            log.info("visit %d left the spool: %d acknowledged", ledger.visit, ledger.acknowledged)
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
            super()._queue(self._watched(token, record))
            self._sent = seq
