"""Writing to our Kafka: a batch, its visits and its marks are one transaction.  All I/O with it."""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from nightwire.core import kafka
from nightwire.core.accounting import Account, from_record, send_to_dead_letters, write_account
from nightwire.core.kafka import MAX_MESSAGE, DeliveryError, Headers, Writer, produce, read_to_end
from nightwire.core.runtime import Stop
from nightwire.producer.ingest.items import Item
from nightwire.producer.ingest.positions import STAGE, SourcePositions
from nightwire.producer.ingest.visits import MirroredVisits
from nightwire.producer.visits.counts import VisitCounts
from nightwire.producer.visits.visits import utc_now
from nightwire.schemas import records, topics

FOR_ITSELF = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_MSG, KafkaError.INVALID_RECORD})
"""Kafka refuses one record for what it is; the others of its batch fail with it."""


class TransactionError(DeliveryError):
    """A record did not get into the transaction, which therefore has to be aborted.

    Attributes:
        for_itself: Whether a record was refused for what it is, so that others may be taken without it.
    """

    def __init__(self, topic: str, error: KafkaError) -> None:
        super().__init__(f"{topic}: {error.str()} ({error.name()})")
        self.for_itself = error.code() in FOR_ITSELF


class TransactionWriter(Writer):
    """Write the records of one transaction.

    Nothing is sent again by itself: in a transaction that lost a record nothing can be.

    Args:
        producer: Has begun a transaction.
        timeout: Longest wait for acknowledgements. [s]
    """

    def __init__(self, producer: Producer, timeout: float) -> None:
        super().__init__(producer, flush_timeout=timeout)
        self._client, self._timeout = producer, timeout
        self._failed: tuple[str, KafkaError] | None = None

    @property
    def failed(self) -> TransactionError | None:
        """The first record that the transaction lost."""
        return None if self._failed is None else TransactionError(*self._failed)

    def write(self, topic: str, value: bytes | None, **options: Any) -> None:
        """Queue one record; wait while librdkafka's queue is full.

        Args:
            topic: Where to.
            value: Its value.
            options: Its ``key`` and ``headers``, and ``on_delivered``, as `Writer.write` has them.

        Raises:
            TransactionError: This record, or one before it, is lost to the transaction.
        """
        then = options.get("on_delivered")
        headers: Headers = options.get("headers", ())

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                # Called with an exception on its way at times, so that nothing may be raised or made here.
                self._failed = self._failed or (topic, error)
            elif then is not None:
                then(message)

        self._check()
        key: bytes | None = options.get("key")
        try:
            produce(
                self._client,
                topic,
                value,
                key,
                on_delivery=delivered,
                on_full=self._full,
                headers=list(headers),
            )
        except KafkaException as error:
            raise TransactionError(topic, error.args[0]) from error
        self._client.poll(0)

    def flush(self) -> None:
        """Wait until every queued record is acknowledged.

        Raises:
            TransactionError: One is lost to the transaction.
            DeliveryError: The wait took too long.
        """
        waiting = self._client.flush(self._timeout)
        self._check()
        if waiting:
            raise DeliveryError(f"{waiting} records unacknowledged after {self._timeout:g} s")

    def _full(self) -> None:
        """Wait for acknowledgements, because librdkafka's queue is full."""
        self._client.poll(0.1)
        self._check()

    def _check(self) -> None:
        if (failed := self.failed) is not None:
            raise failed


log = logging.getLogger("nightwire.ingest")

TRANSACTION_TIMEOUT = 30.0
"""How long Kafka keeps the transaction of a process that died, and readers wait behind it. [s]"""
SETTLING = 90.0
"""Longest wait for the end of somebody else's transaction: theirs, and Kafka's look every 10 s. [s]"""
ANSWER = 10.0
"""Longest wait for an answer; then the question is asked again. [s]"""
GRACE = 30.0
"""How long a process that is to stop waits for a Kafka that is away. [s]"""
LARGEST_LETTER = MAX_MESSAGE - (64 << 10)
"""How much of a record that cannot be used is kept. [byte]"""

FENCED = frozenset({KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH})
"""Another producer of our name has begun, or Kafka gave our transaction up."""


class FencedError(DeliveryError):
    """Another process has taken over this survey."""


def transactional(bootstrap: str, survey: str) -> Producer:
    """Return the producer of the only process that mirrors *survey*: the latest one ends all others."""
    return kafka.producer(
        bootstrap,
        transactional_id=f"nightwire-ingest-{survey}",
        transaction_timeout_ms=int(TRANSACTION_TIMEOUT * 1000),
        delivery_timeout_ms=int(TRANSACTION_TIMEOUT * 1000),
    )


def read_marks(bootstrap: str, prefix: str) -> SourcePositions:
    """Return the marks in `accounts` whose sources begin with *prefix*.

    Raises:
        KafkaException: Kafka does not answer.
    """
    beginning = f"{STAGE}|{prefix}".encode()
    found: dict[object, Account] = {}
    for message in read_to_end(bootstrap, [topics.ACCOUNTS], patience=SETTLING, settled=True):
        if (value := message.value()) is not None and (message.key() or b"").startswith(beginning):
            account = from_record(records.ACCOUNT.decode(value))
            found[account.key] = account
    return SourcePositions(prefix, found.values())


def read_visits(bootstrap: str, survey: str) -> dict[int, bytes]:
    """Return the records of the visits of *survey*, encoded, by number.

    Raises:
        KafkaException: Kafka does not answer.
    """
    found: dict[int, bytes] = {}
    for message in read_to_end(bootstrap, [topics.VISITS], patience=SETTLING, settled=True):
        name, _, number = (message.key() or b"").decode().rpartition("/")
        if name == survey and (value := message.value()) is not None:
            found[int(number)] = value
    return found


@dataclass
class TransactionalSink:
    """Writes batches, each whole or not at all.

    Args:
        producer: From `transactional`; `open` it before the marks are read.
        survey: Name of the survey.
        source: What the source is called in dead letters.
        stop: Is asked whether to go on waiting for a Kafka that is away.
        clock: Gives the time, UTC.
    """

    producer: Producer
    survey: str
    source: str
    stop: Stop
    clock: Callable[[], datetime] = utc_now
    marks: SourcePositions = field(default_factory=lambda: SourcePositions(""))
    book: MirroredVisits = field(default_factory=lambda: MirroredVisits("", {}, quiet=0.0, now=0.0))

    def open(self) -> None:
        """End whatever a process before this one left unfinished, and that process, if it still runs.

        Raises:
            FencedError: A third one did the same just now.
            DeliveryError: Kafka refuses us.
        """
        self._insist(self.producer.init_transactions)

    def due(self) -> bool:
        """Whether a visit is over that `visits` still calls open."""
        return bool(self.book.over((), time.monotonic()))

    def deliver(self, items: Sequence[Item]) -> list[Item]:
        """Write what becomes of *items*; return them as they were written, some perhaps as dead letters.

        On return, Kafka has all of it: alerts, visits, dead letters, accounts.  A Kafka that is away is
        waited for.

        Raises:
            FencedError: Another process has taken over.
            DeliveryError: Kafka refuses us, or is away and it is time to stop; nothing of the batch is there.
        """
        while (refusal := self._tried(items)) is not None:
            if isinstance(refusal, TransactionError) and refusal.for_itself and items:
                return self._apart(items, refusal)
            log.warning("once more: %s", refusal)
            if self.stop.wait(1.0):
                raise DeliveryError(f"stopped with a batch unwritten, which comes again: {refusal}")
        return list(items)

    def close_visits(self) -> None:
        """Write that all open visits are over.

        Raises:
            DeliveryError: As `deliver`.
        """
        self.book.end()
        self.deliver(())

    def _apart(self, items: Sequence[Item], refusal: DeliveryError) -> list[Item]:
        """Halve the batch until the record is found that Kafka refuses, and bury that."""
        if len(items) > 1:
            half = len(items) // 2
            return self.deliver(items[:half]) + self.deliver(items[half:])
        if items[0].dead is not None:
            raise refusal  # not even its letter is taken
        log.warning("%s goes to dead-letters: %s", items[0].where, refusal)
        return self.deliver([items[0].buried(str(refusal))])

    def _tried(self, items: Sequence[Item]) -> DeliveryError | None:
        """Write all in one transaction; None when Kafka has it, else why it does not."""
        writer = TransactionWriter(self.producer, TRANSACTION_TIMEOUT + ANSWER)
        try:
            self.producer.begin_transaction()
            self._transaction(writer, items)
        except (DeliveryError, KafkaException) as error:
            self._give_up(error)
            return writer.failed or _as_delivery(error)
        return None

    def _transaction(self, writer: TransactionWriter, items: Sequence[Item]) -> None:
        counted = self.book.ledgers(_visits(items), self.clock())
        for item in items:
            self._write(writer, item, counted)
        writer.flush()  # now it is known where they lie
        now = time.monotonic()
        closed = self._write_visits(writer, counted, now)
        accounts = self.marks.after(items)
        for account in accounts:
            write_account(writer, account)
        self._insist(self.producer.commit_transaction)
        self.marks.keep(accounts)
        self.book.keep(counted, closed, now)

    def _write(self, writer: TransactionWriter, item: Item, counted: dict[int, VisitCounts]) -> None:
        if item.dead is not None:
            reason, source = item.dead, f"{self.survey}/{self.source}/{item.where}"
            if len(item.value) > LARGEST_LETTER:
                reason = f"the first {LARGEST_LETTER} of {len(item.value)} bytes: {reason}"
            letter, key, came = item.value[:LARGEST_LETTER], item.key, item.headers
            send_to_dead_letters(
                writer, letter, stage=STAGE, source=source, reason=reason, key=key, headers=came
            )
        for one in item.outputs:
            count = None if one.visit is None else counted[one.visit].delivered
            topic = topics.alerts(self.survey)
            writer.write(topic, one.value, key=one.key, headers=one.headers, on_delivered=count)

    def _write_visits(
        self, writer: TransactionWriter, counted: dict[int, VisitCounts], now: float
    ) -> dict[int, bytes]:
        over = self.book.over(counted, now)
        moment, closed = self.clock(), {}
        for number, ledger in (self.book.ledgers(over, moment) | dict(counted)).items():
            ledger.offered = ledger.acknowledged
            value = records.VISIT.encode(ledger.record(moment if number in over else None))
            if number in over:
                write_account(writer, ledger.account())
                closed[number] = value
            writer.write(topics.VISITS, value, key=ledger.key)
        return closed

    def _give_up(self, error: Exception) -> None:
        """Abort the transaction."""
        if isinstance(error, FencedError):
            raise error
        self._insist(self.producer.abort_transaction)

    def _insist(self, call: Callable[[float], object]) -> None:
        """Call until Kafka has answered.

        Raises:
            FencedError: Another process has taken over.
            DeliveryError: Kafka refuses us, or is away and it is time to stop.
            KafkaException: The transaction has to be aborted.
        """
        deadline: float | None = None
        while True:
            try:
                call(ANSWER)
            except KafkaException as error:
                self._judge(error)
                if self.stop.is_set():
                    deadline = deadline or time.monotonic() + GRACE
                    if time.monotonic() > deadline:
                        raise DeliveryError(f"Kafka is away: {error.args[0].str()}") from error
            else:
                return

    def _judge(self, error: KafkaException) -> None:
        """Return where asking again may help."""
        what: KafkaError = error.args[0]
        if what.code() in FENCED and not what.txn_requires_abort():
            raise FencedError(
                f"another `nightwire ingest --survey {self.survey}` has taken over, or Kafka gave this one up"
            ) from error
        if what.txn_requires_abort():
            raise error
        if what.fatal() or not what.retriable():
            raise DeliveryError(what.str()) from error
        log.warning("our Kafka does not answer: %s", what.str())


def _visits(items: Iterable[Item]) -> list[int]:
    return [one.visit for item in items for one in item.outputs if one.visit is not None]


def _as_delivery(error: DeliveryError | KafkaException) -> DeliveryError:
    if isinstance(error, DeliveryError):
        return error
    return DeliveryError(error.args[0].str())
