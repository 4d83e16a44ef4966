"""AlertWriter: nothing is lost in silence."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer

from nightwire.core.kafka import DeliveryError
from nightwire.core.stack import Broker, free_port
from nightwire.producer import AlertWriter
from nightwire.producer.simulation.alerts import STAMPS
from nightwire.producer.writing.connect import Connection, make_topics, writer_arguments
from nightwire.producer.writing.writer import WriterOptions
from nightwire.schemas import SIM_ALERT_ID, Codec, EncodeError, SchemaError, sim_alert_schema, survey
from nightwire.schemas.wire import unframe

Alerts = list[dict[str, Any]]

IMPATIENT = WriterOptions(flush_timeout=0.01)


class FakeMessage:
    """What librdkafka hands to a delivery callback."""

    def topic(self) -> str:
        """Return where it went."""
        return "alerts.sim"

    def value(self) -> bytes:
        """Return what it holds."""
        return b""

    def key(self) -> bytes:
        """Return whose it is."""
        return b""

    def partition(self) -> int:
        """Return where it lies."""
        return 0

    def offset(self) -> int:
        """Return where in its partition it lies."""
        return 0


class FakeProducer:
    """A producer whose broker refuses everything, is silent, or is at first too busy."""

    def __init__(self, *, error: KafkaError | None = None, silent: bool = False, busy: int = 0) -> None:
        self.error, self.silent, self.busy = error, silent, busy
        self.values: list[bytes] = []

    def produce(self, _topic: str, value: bytes, _key: bytes, *, on_delivery: Any, **_rest: Any) -> None:
        """Take a record, unless the queue is full."""
        if self.busy:
            self.busy -= 1
            raise BufferError
        self.values.append(value)
        if not self.silent:
            on_delivery(self.error, FakeMessage())

    def poll(self, _timeout: float) -> int:
        """Serve no callbacks: they are called at once."""
        return 0

    def flush(self, _timeout: float) -> int:
        """Return how many are unacknowledged."""
        return len(self.values) if self.silent else 0


def writer(producer: Any, codec: Codec, **options: Any) -> AlertWriter:
    """Return a writer of simulated alerts."""
    return AlertWriter(producer, survey("sim"), codec, SIM_ALERT_ID, **options)


def test_a_refused_alert_is_an_error_of_every_later_call(visit: Alerts, codec: Codec) -> None:
    alerts = writer(FakeProducer(error=KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)), codec)
    alerts.write(visit[0])
    for _ in range(2):
        with pytest.raises(DeliveryError, match=r"alerts\.sim"):
            alerts.write(visit[1])
    with pytest.raises(DeliveryError):
        alerts.flush()


def test_a_silent_broker_is_an_error_at_the_end_of_the_block(visit: Alerts, codec: Codec) -> None:
    with (
        pytest.raises(DeliveryError, match="1 records unacknowledged"),
        writer(FakeProducer(silent=True), codec, options=IMPATIENT) as alerts,
    ):
        alerts.write(visit[0])


def test_a_full_queue_is_waited_for(visit: Alerts, codec: Codec) -> None:
    producer = FakeProducer(busy=3)
    with writer(producer, codec) as alerts:
        alerts.write(visit[0])
    assert len(producer.values) == 1


def test_an_error_of_the_block_is_not_displaced(codec: Codec, visit: Alerts) -> None:
    with (
        pytest.raises(ZeroDivisionError),
        writer(FakeProducer(silent=True), codec, options=IMPATIENT) as alerts,
    ):
        alerts.write(visit[0] if 1 / 0 else {})


@pytest.mark.parametrize(
    ("change", "said"),
    [({"diaSource": None}, r"alert \d+: .*diaSource"), ({"diaSourceId": "x", "diaSource": {}}, "x")],
)
def test_an_alert_that_does_not_fit_is_named_and_nothing_is_queued(
    change: dict[str, Any], said: str, visit: Alerts, codec: Codec
) -> None:
    producer = FakeProducer()
    with pytest.raises(EncodeError, match=said):
        writer(producer, codec).write(visit[0] | change)
    assert producer.values == []


def test_an_alert_without_any_id_is_refused(codec: Codec) -> None:
    with pytest.raises(EncodeError, match="no alert of survey sim"):
        writer(FakeProducer(), codec).write({})


def test_a_visit_counts_what_it_refuses_and_goes_on(visit: Alerts, codec: Codec) -> None:
    alerts = writer(FakeProducer(), codec)
    with alerts.visit(2026030143200) as one:
        one.write(visit[0])
        with pytest.raises(EncodeError):
            one.write(visit[1] | {"diaObject": 3})
        one.write(visit[2])
    assert (one.counts.offered, one.counts.acknowledged, one.counts.refused.total()) == (3, 2, 1)


def consume(bootstrap: str, topic: str, count: int) -> list[Any]:
    """Return the first *count* messages of *topic*."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    messages: list[Any] = []
    while len(messages) < count:
        message = consumer.poll(20.0)
        assert message is not None, f"{len(messages)} of {count} messages"
        if message.error() is None:
            messages.append(message)
    consumer.close()
    return messages


@pytest.mark.slow
def test_what_is_written_arrives_in_wire_format_in_order_per_object(
    bootstrap: str, play: Callable[..., list[Alerts]], codec: Codec
) -> None:
    bare = dict.fromkeys(STAMPS)  # librdkafka's mock cluster keeps 5 MB of a partition
    alerts = [alert | bare for alerts in play(40, visits=3) for alert in alerts]
    producer = Producer({"bootstrap.servers": bootstrap, "partitioner": "murmur2_random"})
    with writer(producer, codec, topic="alerts.order") as out:
        for alert in alerts:
            out.write(alert)
    assert out.acknowledged == len(alerts)
    sent: dict[bytes, list[bytes]] = {}
    for alert in alerts:
        sent.setdefault(survey("sim").key(alert), []).append(codec.encode(alert))
    arrived: dict[bytes, list[bytes]] = {}
    for message in consume(bootstrap, "alerts.order", len(alerts)):
        schema_id, body = unframe(message.value())
        assert schema_id == SIM_ALERT_ID
        arrived.setdefault(message.key(), []).append(body)
    assert arrived == sent


@pytest.mark.kafka
def test_a_writer_that_lives_on_while_another_kafka_takes_the_address_says_so(
    fresh_broker: Broker, tmp_path: Path, visit: Alerts
) -> None:
    """Its schema's id is unknown there, or another schema's: what is acknowledged would be lost."""
    address = fresh_broker.bootstrap
    make_topics(address, "sim")
    found = Connection(address, SIM_ALERT_ID, answers=True)
    alerts = AlertWriter(**writer_arguments(found, "sim", sim_alert_schema()))
    alerts.write(visit[0])
    alerts.flush()
    fresh_broker.kill()
    fresh_broker.start()
    alerts.write(visit[1])
    alerts.flush()
    fresh_broker.kill()
    other = Broker(tmp_path / "other", port=fresh_broker.port, controller=free_port())
    other.start()
    try:
        make_topics(address, "sim")
        alerts.write(visit[2])
        for _ in range(2):
            with pytest.raises(DeliveryError, match=f"another Kafka has taken {address}"):
                alerts.flush()
    finally:
        other.kill()


def test_a_writer_that_cannot_be_made_leaves_no_thread() -> None:
    before = {*threading.enumerate()}
    with pytest.raises(SchemaError):
        writer_arguments(
            Connection("127.0.0.1:9", SIM_ALERT_ID, answers=False), "nowhere", sim_alert_schema()
        )
    assert not {one.name for one in threading.enumerate() if one not in before}
