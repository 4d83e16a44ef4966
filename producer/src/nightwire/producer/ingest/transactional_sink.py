"""Writing to our Kafka: a batch, its visits and its accounts are one transaction."""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from nightwire.core.accounting import Account, from_record, send_to_dead_letters, write_account
from nightwire.core.channels import ChannelCopies
from nightwire.core.kafka import (
    MAX_MESSAGE,
    DeliveryError,
    Headers,
    Writer,
    error_text,
    fenced_producer,
    produce,
    read_to_end,
)
from nightwire.core.runtime import Stop
from nightwire.producer.ingest.items import Item
from nightwire.producer.ingest.positions import STAGE, SourcePositions
from nightwire.producer.ingest.visits import MirroredVisits
from nightwire.producer.visits.counts import VisitCounts
from nightwire.producer.visits.visit_topic import utc_now
from nightwire.schemas import records, topics

log = logging.getLogger("nightwire.ingest")

TRANSACTION_TIMEOUT = 30.0
"""How long Kafka keeps a dead process's transaction open, behind which readers wait. [s]"""
SETTLE_TIMEOUT = 90.0
"""Longest wait for the end of another process's transaction; Kafka checks every 10 s. [s]"""
REQUEST_TIMEOUT = 10.0
"""Longest wait for an answer before the request is made again. [s]"""
STOP_TIMEOUT = 30.0
"""How long a stopping process waits for a Kafka that is away. [s]"""
MAX_DEAD_LETTER = MAX_MESSAGE - (64 << 10)
"""Most bytes of a record that go to `dead-letters`."""

Delivered = Callable[[Message], None]

FENCED = frozenset(
    {
        KafkaError._FENCED,
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.INVALID_TXN_STATE,
    }
)
"""Another producer of our name has begun, or Kafka aborted our transaction."""
RECORD_ERRORS = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_MSG, KafkaError.INVALID_RECORD})
"""Kafka refuses one record itself; the others of its batch fail with it."""


class TransactionError(DeliveryError):
    """A record did not get into the transaction, which therefore has to be aborted.

    Attributes:
        blames_record: Whether a record itself was refused, so that Kafka may take the others.
    """

    def __init__(self, topic: str, error: KafkaError) -> None:
        super().__init__(f"{topic}: {error.str()} ({error.name()})")
        self.blames_record = error.code() in RECORD_ERRORS


class TransactionWriter(Writer):
    """Writes the records of one transaction.

    It repeats no record: a transaction that lost one can only be aborted.

    Args:
        client: A producer that has begun a transaction.
        timeout: Longest wait for acknowledgements. [s]
    """

    def __init__(self, client: Producer, timeout: float) -> None:
        super().__init__(client, flush_timeout=timeout)
        self._client, self._timeout = client, timeout
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
                # It may be called while an exception is raised: raise and build none here.
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
        try:
            waiting = self._client.flush(self._timeout)
        except SystemError:  # confluent-kafka's, where librdkafka's fatal error comes within it
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


class FencedError(DeliveryError):
    """Another process has taken over this survey."""


def transactional_producer(bootstrap: str, survey: str) -> Producer:
    """Return the producer of the process that mirrors *survey*: the latest fences others off."""
    return fenced_producer(
        bootstrap, f"nightwire-ingest-{survey}", longest_ms=int(TRANSACTION_TIMEOUT * 1000)
    )


def read_positions(bootstrap: str, prefix: str) -> SourcePositions:
    """Return the positions in `accounts` whose sources begin with *prefix*.

    Raises:
        KafkaException: Kafka does not answer.
    """
    beginning = f"{STAGE}|{prefix}".encode()
    found: dict[object, Account] = {}
    for message in read_to_end(bootstrap, [topics.ACCOUNTS], patience=SETTLE_TIMEOUT, settled=True):
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
    for message in read_to_end(bootstrap, [topics.VISITS], patience=SETTLE_TIMEOUT, settled=True):
        name, _, number = (message.key() or b"").decode().rpartition("/")
        if name == survey and (value := message.value()) is not None:
            found[int(number)] = value
    return found


@dataclass
class TransactionalSink:
    """Writes batches, each whole or not at all.

    Args:
        client: From `transactional_producer`; `open` the sink before positions are read.
        survey: Name of the survey.
        source: Name of the source in dead letters.
        stop: Ends the wait for a Kafka that is away.
        clock: Gives the time, UTC.
        positions: How far the source is mirrored.
        visits: The visits of the stream.
        channels: Copies what was committed to the topic's channels.
    """

    client: Producer
    survey: str
    source: str
    stop: Stop
    clock: Callable[[], datetime] = utc_now
    positions: SourcePositions = field(default_factory=lambda: SourcePositions(""))
    visits: MirroredVisits = field(default_factory=lambda: MirroredVisits("", {}, quiet=0.0, now=0.0))
    channels: ChannelCopies | None = None

    def open(self) -> None:
        """Abort what an earlier process left unfinished, and fence it off where it still runs.

        Raises:
            FencedError: A third process did the same just now.
            DeliveryError: Kafka refuses us.
        """
        self._retry(self.client.init_transactions)

    def due(self) -> bool:
        """Whether a visit is over that is still open in `visits`."""
        return bool(self.visits.over((), time.monotonic()))

    def deliver(self, items: Sequence[Item]) -> list[Item]:
        """Write *items*; return them as they were written, some perhaps as dead letters.

        On return Kafka has all: alerts, visits, dead letters, accounts.  It waits for a Kafka that
        is away.

        Raises:
            FencedError: Another process has taken over.
            DeliveryError: Kafka refuses us, or is away and it is time to stop; it has nothing of
                the batch.
        """
        while (refusal := self._try(items)) is not None:
            if isinstance(refusal, TransactionError) and refusal.blames_record and items:
                return self._bisect(items, refusal)
            log.warning("once more: %s", refusal)
            if self.stop.wait(1.0):
                raise DeliveryError(f"stopped with a batch unwritten, which comes again: {refusal}")
        return list(items)

    def close_visits(self) -> None:
        """Write that all open visits are over.

        Raises:
            DeliveryError: As `deliver`.
        """
        self.visits.end()
        self.deliver(())

    def _bisect(self, items: Sequence[Item], refusal: DeliveryError) -> list[Item]:
        """Halve the batch until the refused record is found, and make that a dead letter."""
        if len(items) > 1:
            half = len(items) // 2
            return self.deliver(items[:half]) + self.deliver(items[half:])
        if items[0].dead_letter_reason is not None:
            raise refusal  # even its dead letter is refused
        log.warning("%s goes to dead-letters: %s", items[0].where, refusal)
        return self.deliver([items[0].as_dead_letter(str(refusal))])

    def _try(self, items: Sequence[Item]) -> DeliveryError | None:
        """Write *items* in one transaction; return why Kafka did not take it, else None."""
        writer = TransactionWriter(self.client, TRANSACTION_TIMEOUT + REQUEST_TIMEOUT)
        try:
            self.client.begin_transaction()
            self._transaction(writer, items)
        except (DeliveryError, KafkaException) as error:
            self._abort(error)
            return writer.failed or _as_delivery(error)
        return None

    def _transaction(self, writer: TransactionWriter, items: Sequence[Item]) -> None:
        counted = self.visits.counts_by_visit(_visits(items), self.clock())
        written: list[tuple[Message, Headers]] = []
        for item in items:
            self._write(writer, item, counted, written)
        writer.flush()  # now their offsets are known
        now = time.monotonic()
        closed = self._write_visits(writer, counted, now)
        accounts = self.positions.after(items)
        for account in accounts:
            write_account(writer, account)
        self._retry(self.client.commit_transaction)
        self.positions.keep(accounts)
        self.visits.keep(counted, closed, now)
        if self.channels is not None and self.channels.active:
            self.channels.committed(written)

    def _write(
        self,
        writer: TransactionWriter,
        item: Item,
        counted: dict[int, VisitCounts],
        written: list[tuple[Message, Headers]],
    ) -> None:
        if item.dead_letter_reason is not None:
            reason, source = item.dead_letter_reason, f"{self.survey}/{self.source}/{item.where}"
            if len(item.value) > MAX_DEAD_LETTER:
                reason = f"the first {MAX_DEAD_LETTER} of {len(item.value)} bytes: {reason}"
            send_to_dead_letters(
                writer,
                item.value[:MAX_DEAD_LETTER],
                stage=STAGE,
                source=source,
                reason=reason,
                key=item.key,
                headers=item.headers,
            )

        def take(message: Message, headers: Headers) -> None:
            written.append((message, headers))

        for one in item.outputs:
            count: Delivered | None = None if one.visit is None else counted[one.visit].delivered
            if self.channels is not None:
                count = self.channels.after(count, one.headers, take)
            topic = topics.alerts(self.survey)
            writer.write(topic, one.value, key=one.key, headers=one.headers, on_delivered=count)

    def _write_visits(
        self, writer: TransactionWriter, counted: dict[int, VisitCounts], now: float
    ) -> dict[int, bytes]:
        over = self.visits.over(counted, now)
        moment, closed = self.clock(), {}
        for number, counts in (self.visits.counts_by_visit(over, moment) | dict(counted)).items():
            counts.offered = counts.acknowledged
            value = records.VISIT.encode(counts.record(moment if number in over else None))
            if number in over:
                write_account(writer, counts.account())
                closed[number] = value
            writer.write(topics.VISITS, value, key=counts.key)
        return closed

    def _abort(self, error: Exception) -> None:
        """Abort the transaction."""
        if isinstance(error, FencedError):
            raise error
        self._retry(self.client.abort_transaction)

    def _retry(self, request: Callable[[float], object]) -> None:
        """Make a *request* until Kafka answers it.

        Raises:
            FencedError: Another process has taken over.
            DeliveryError: Kafka refuses us, or is away and it is time to stop.
            KafkaException: The transaction has to be aborted.
        """
        deadline: float | None = None
        while True:
            try:
                request(REQUEST_TIMEOUT)
            except KafkaException as error:
                self._check_retriable(error)
                if self.stop.is_set():
                    deadline = deadline or time.monotonic() + STOP_TIMEOUT
                    if time.monotonic() > deadline:
                        raise DeliveryError(f"Kafka is away: {error_text(error)}") from error
            else:
                return

    def _check_retriable(self, error: KafkaException) -> None:
        """Return where another request may help; raise the error that says why not."""
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
    return DeliveryError(error_text(error))
