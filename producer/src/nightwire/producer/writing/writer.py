"""`AlertWriter`: alerts are encoded, framed, keyed by their object and written to Kafka."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from confluent_kafka import Producer

from nightwire.core.channels import ChannelCopies
from nightwire.core.kafka import MAX_MESSAGE, DeliveryError, Record, Writer
from nightwire.producer.spool.spool import Spool
from nightwire.producer.spool.spooling import SpoolingWriter
from nightwire.producer.visits.counts import VisitCounts
from nightwire.producer.visits.visit_topic import VISIT_HEADER, VisitTopic
from nightwire.producer.writing.message_format import TEST_HEADER, MessageFormat, WireFormat
from nightwire.producer.writing.visit_writer import Delivered, EncodedAlert, Refused, VisitWriter
from nightwire.schemas import Codec, DecodeError, EncodeError, Survey, topics

Alert = Mapping[str, Any]

OVERHEAD = 4096
"""Room for a record's key and headers. [byte]"""


@dataclass(frozen=True)
class WriterOptions:
    """How an `AlertWriter` writes.

    Attributes:
        flush_timeout: Longest wait for acknowledgements. [s]
        message_format: Format of alerts in Kafka; by default Confluent wire format.
        test: Mark the alerts as tests.
    """

    flush_timeout: float = 150.0
    message_format: MessageFormat | None = None
    test: bool = False


class AlertWriter:
    """Writes a survey's alerts to its topic, at least once, in order per object.

    `write` queues and returns at once; `flush` waits for the broker.  A failed delivery is kept and
    raised by every later call, so a caller that reaches the end of its ``with`` block knows that
    every alert was acknowledged.  One thread only.

    With a spool, Kafka may be away: alerts then go to a file, and from there to Kafka when it is
    back, in their order.  `flush` returns when every alert is acknowledged or safely on disk; the
    next writer sends those that a killed process left in the file.

    Args:
        producer: A ``confluent_kafka.Producer``.
        survey: Knows where an alert of this survey keeps its ids.
        codec: Turns alerts into bytes.
        schema_id: Id of the codec's schema in the registry.
        topic: Topic to write to; by default the survey's own.
        spool: Where alerts wait while Kafka is away; None = errors of delivery are raised instead.
        options: How to write.
        check: Is called when all is acknowledged; raises where that is worth nothing.
        channels: Copies what is written to the topic's channels; begun here, ended by `close`.
    """

    def __init__(
        self,
        producer: Producer,
        survey: Survey,
        codec: Codec,
        schema_id: int,
        *,
        topic: str | None = None,
        spool: Spool | None = None,
        options: WriterOptions = WriterOptions(),
        check: Callable[[], None] = lambda: None,
        channels: ChannelCopies | None = None,
    ) -> None:
        self._survey, self._codec = survey, codec
        self._format = options.message_format or WireFormat(schema_id)
        self._check, self._channels = check, channels
        self._test_headers = [TEST_HEADER] if options.test else []
        self.topic = topic or topics.alerts(survey.name)
        self._spooling = None if spool is None else SpoolingWriter(producer, spool)
        self.records: Writer = self._spooling or Writer(producer, flush_timeout=options.flush_timeout)
        self.visit_topic = VisitTopic(self.records, survey.name)
        if self._spooling is not None:
            self._spooling.begin(self.visit_topic.closing)
        if channels is not None:
            channels.start()

    @classmethod
    def connect(
        cls,
        name: str,
        schema: Mapping[str, Any],
        *,
        schema_id: int | None = None,
        bootstrap: str | None = None,
        registry: str | None = None,
        spool: Path | str | None = None,
        spool_bytes: int = 10 << 30,
    ) -> Self:
        """Return a writer for the survey *name*, its topic made and its schema registered.

        Visits that a dead writer left open on this machine are closed with the alerts in the topic.

        Args:
            name: Survey, such as ``lsst``.
            schema: Of its alerts, as parsed JSON.
            schema_id: The id that the survey gives to its schema; else the registry chooses one.
            bootstrap: Kafka's address; else the environment's or the running embedded stack's.
            registry: The schema registry's URL; else likewise.
            spool: File for alerts while Kafka is away, such as ``/var/spool/nightwire/lsst``; with
                it and a *schema_id*, Kafka and the registry may be away at once.
            spool_bytes: Most that the spool holds. [byte]

        Raises:
            NoStackError: There is no Kafka to talk to.
            SchemaError: The registry refuses the schema, or does not answer.
            KafkaException: Kafka does not answer.
            SpoolError: Another process uses the spool.
        """
        from nightwire.producer.writing.connect import connect, topic_format, writer_arguments

        found = connect(name, schema, schema_id, (bootstrap, registry), may_be_away=spool is not None)
        options = WriterOptions(message_format=topic_format(name, schema, found.schema_id))
        opened = Spool(Path(spool), limit=spool_bytes) if spool is not None else None
        writer = cls(**writer_arguments(found, name, schema), spool=opened, options=options)
        if found.answers:
            writer.tidy(found.kafka)
        return writer

    @property
    def acknowledged(self) -> int:
        """How many records Kafka has acknowledged: alerts, and the records of their visits."""
        return self.records.acknowledged

    def encoded(self, alert: Alert) -> EncodedAlert:
        """Return the key and the value of *alert*.

        Raises:
            EncodeError: It does not fit the schema, has no id, or is larger than a record may be.
        """
        value = self._format.value(self._body(alert))
        if len(value) > MAX_MESSAGE - OVERHEAD:
            name = self._survey.alert_id(alert)
            raise EncodeError(f"alert {name}: {len(value):,} bytes, and a record may have {MAX_MESSAGE:,}")
        return EncodedAlert(self._survey.key(alert), value)

    def write(self, alert: Alert, *, visit: int | None = None, on_delivered: Delivered | None = None) -> None:
        """Queue *alert*, keyed by its object.

        Args:
            alert: By its survey's own field names.
            visit: Visit to name in the record's header.
            on_delivered: Is called with the acknowledged message, unless the alert was spooled.

        Raises:
            EncodeError: The alert does not fit the schema, or has no id; nothing was queued.
            SpoolFullError: Kafka is away and the spool is full; the alert was not taken.
            DeliveryError: An earlier alert was lost.
        """
        self.send(self.encoded(alert), visit=visit, on_delivered=on_delivered)

    def send(
        self,
        alert: EncodedAlert,
        *,
        visit: int | None = None,
        on_delivered: Delivered | None = None,
        on_refused: Refused | None = None,
    ) -> None:
        """Queue an encoded alert.

        Args:
            alert: Its key and value.
            visit: Visit to name in the record's header.
            on_delivered: Is called with the acknowledged message, unless the alert was spooled.
            on_refused: Is called when the record is too large for the topic; else that is a failed
                delivery.

        Raises:
            SpoolFullError: Kafka is away and the spool is full; the alert was not taken.
            DeliveryError: An earlier alert was lost.
        """
        headers = [] if visit is None else [(VISIT_HEADER, str(visit).encode())]
        headers += self._test_headers + self._format.headers()
        if self._channels is not None:
            on_delivered = self._channels.after(on_delivered, headers)
        if self._spooling is not None:
            record = Record(self.topic, alert.value, alert.key, headers, (), on_delivered, on_refused)
            self._spooling.put(record, visit=visit)
            return
        self.records.write(
            self.topic,
            alert.value,
            key=alert.key,
            headers=headers,
            on_delivered=on_delivered,
            on_refused=on_refused,
        )

    def flush(self) -> None:
        """Wait until every queued alert is acknowledged, or safely in the spool.

        Raises:
            DeliveryError: One was refused, the wait took too long, or another Kafka took the
                address.
        """
        self.records.flush()
        if self._spooling is None or not self._spooling.spooling:
            self._check()

    @contextmanager
    def visit(self, number: int) -> Iterator[VisitWriter]:
        """Open visit *number*, and close it with its counts once all its alerts are acknowledged.

        Where some are in the spool it is closed later, when the last has left it.  A visit whose
        block ends in an error stays open in `visits`, since its counts are not known.

        Raises:
            DeliveryError: An alert was lost.
        """
        counts = self.visit_topic.open(number)
        yield VisitWriter(self, counts)
        self.close_visit(counts)

    def close_visit(self, counts: VisitCounts) -> None:
        """Close the visit of *counts* once its alerts are acknowledged; with a spool maybe later.

        Raises:
            DeliveryError: An alert was lost.
        """
        self.flush()
        if self._spooling is None or not self._spooling.ended(counts):
            self.visit_topic.close(counts)

    def tidy(self, bootstrap: str) -> int:
        """Close the visits that a dead writer left open; return the highest visit number in use.

        Alerts that an earlier process left in the spool are sent first.

        Raises:
            KafkaException: Kafka cannot be reached.
            DeliveryError: Kafka did not take the records.
        """
        from nightwire.producer.visits.abandoned import close_dead_visits

        if self._spooling is None or self._spooling.drained():
            return close_dead_visits(bootstrap, self.visit_topic, self._survey.name)
        return 0

    def close(self) -> None:
        """Flush, and send the spooled alerts for as long as Kafka takes them.

        Raises:
            DeliveryError: An alert was refused, or the wait took too long.
        """
        try:
            self.flush()
        finally:
            if self._spooling is not None:
                self._spooling.close()
            if self._channels is not None:
                self._channels.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close; an error of the block is not displaced by one of the flush."""
        try:
            self.close()
        except DeliveryError:
            if error is None:
                raise

    def _body(self, alert: Alert) -> bytes:
        try:
            name = self._survey.alert_id(alert)
        except DecodeError as error:
            raise EncodeError(str(error)) from error
        try:
            return self._codec.encode(alert)
        except EncodeError as error:
            raise EncodeError(f"alert {name}: {error}") from error
