"""Alerts into Kafka: encoded, framed, keyed by their object, counted by their visit."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from confluent_kafka import Message, Producer

from nightwire.core import kafka
from nightwire.core.endpoints import find_endpoints
from nightwire.producer._ledger import Ledger
from nightwire.producer._visits import HEADER, VisitDesk
from nightwire.schemas import Codec, DecodeError, EncodeError, SchemaRegistry, Survey, survey, topics
from nightwire.schemas.wire import frame

Alert = Mapping[str, Any]


class AlertWriter:
    """Write a survey's alerts to its topic, at least once, in order per object.

    `write` queues and returns at once; `flush` waits for the broker.  A failed delivery is kept and raised
    by every later call, so a caller that reaches the end of its ``with`` block knows that every alert was
    acknowledged.  One thread only.

    Args:
        producer: A ``confluent_kafka.Producer``.
        survey: Knows where an alert of this survey keeps its ids.
        codec: Turns alerts into bytes.
        schema_id: Id of the codec's schema in the registry.
        topic: Topic to write to; by default the survey's own.
        flush_timeout: Longest wait for acknowledgements. [s]
    """

    def __init__(
        self,
        producer: Producer,
        survey: Survey,
        codec: Codec,
        schema_id: int,
        *,
        topic: str | None = None,
        flush_timeout: float = 150.0,
    ) -> None:
        self._writer = kafka.Writer(producer, flush_timeout=flush_timeout)
        self._survey, self._codec, self._schema_id = survey, codec, schema_id
        self.topic = topic or topics.alerts(survey.name)
        self.desk = VisitDesk(self._writer, survey.name)

    @classmethod
    def connect(
        cls,
        name: str,
        schema: Mapping[str, Any],
        *,
        schema_id: int | None = None,
        bootstrap: str | None = None,
        registry: str | None = None,
    ) -> Self:
        """Return a writer for the survey *name*, its topic made and its schema registered.

        Args:
            name: Survey, such as ``lsst``.
            schema: Of its alerts, as parsed JSON.
            schema_id: The id that the survey gives to its schema; else the registry chooses one.
            bootstrap: Kafka's address; else the environment's or the running embedded stack's.
            registry: The schema registry's URL; else likewise.

        Raises:
            NoStackError: There is no Kafka to talk to.
            SchemaError: The registry refuses the schema, or does not answer.
            KafkaException: Kafka does not answer.
        """
        found = find_endpoints(bootstrap, registry)
        names = (topics.alerts(name), topics.VISITS, topics.ACCOUNTS)
        kafka.ensure_topics(found.kafka, [topics.settings(topic) for topic in names])
        with SchemaRegistry(found.schema_registry) as schemas:
            number = schemas.register(f"{topics.alerts(name)}-value", schema, schema_id=schema_id)
        return cls(kafka.producer(found.kafka), survey(name), Codec(schema), number)

    @property
    def acknowledged(self) -> int:
        """Records that Kafka has acknowledged so far; alerts, and the records of their visits."""
        return self._writer.acknowledged

    def write(
        self,
        alert: Alert,
        *,
        visit: int | None = None,
        on_delivered: Callable[[Message], None] | None = None,
    ) -> None:
        """Queue *alert*, keyed by its object.

        Args:
            alert: By its survey's own field names.
            visit: Visit to name in the record's header.
            on_delivered: Is called with the acknowledged message.

        Raises:
            EncodeError: The alert does not fit the schema, or has no id; nothing was queued.
            DeliveryError: An earlier alert was lost.
        """
        value, key = frame(self._schema_id, self._body(alert)), self._survey.key(alert)
        headers = [] if visit is None else [(HEADER, str(visit).encode())]
        self._writer.write(self.topic, value, key=key, headers=headers, on_delivered=on_delivered)

    def flush(self) -> None:
        """Wait until every queued alert is acknowledged.

        Raises:
            DeliveryError: One was refused, or the wait took too long.
        """
        self._writer.flush()

    @contextmanager
    def visit(self, number: int) -> Iterator["VisitWriter"]:
        """Open visit *number*, and close it with its counts once all its alerts are acknowledged.

        A visit whose block ends in an error stays open in `visits`: what became of it is not known.

        Raises:
            DeliveryError: An alert was lost.
        """
        ledger = self.desk.open(number)
        yield VisitWriter(self, ledger)
        self.flush()
        self.desk.close(ledger)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Flush; an error of the block is not displaced by one of the flush."""
        try:
            self.flush()
        except kafka.DeliveryError:
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


class VisitWriter:
    """Write the alerts of one visit."""

    def __init__(self, alerts: AlertWriter, ledger: Ledger) -> None:
        self._alerts, self.ledger = alerts, ledger

    def write(self, alert: Alert) -> None:
        """Queue *alert* and count it.

        Raises:
            EncodeError: The alert does not fit; it is counted as refused, and the visit can go on.
            DeliveryError: An earlier alert was lost.
        """
        self.ledger.offered += 1
        try:
            self._alerts.write(alert, visit=self.ledger.visit, on_delivered=self.ledger.delivered)
        except EncodeError:
            self.ledger.refuse("does-not-fit-schema")
            raise
