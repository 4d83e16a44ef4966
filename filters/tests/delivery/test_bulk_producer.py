"""Writing very many small records, and copies for many topics."""

import uuid
from dataclasses import dataclass, field

import pytest

from nightwire.core.kafka import DeliveryError, Record, producer, read_to_end, watermarks
from nightwire.filters.delivery.producers import RECORDS_PER_BATCH, BulkProducer, GatheredCopies
from nightwire.filters.reading.fetch import range_consumer


@pytest.mark.slow
def test_all_are_there_after_flush(bootstrap: str) -> None:
    topic, bulk = f"t{uuid.uuid4().hex}", BulkProducer(producer(bootstrap))
    bulk.write(topic, ((b"7", b"x") for _ in range(3 * RECORDS_PER_BATCH)))
    bulk.flush()
    consumer = range_consumer(bootstrap)
    ends = [
        watermarks(consumer, topic, part)[1] for part in consumer.list_topics(topic).topics[topic].partitions
    ]
    consumer.close()
    assert sum(ends) == 3 * RECORDS_PER_BATCH


@pytest.mark.slow
def test_a_full_queue_is_waited_for(bootstrap: str) -> None:
    bulk = BulkProducer(producer(bootstrap, queue_buffering_max_messages=100))
    topic = f"t{uuid.uuid4().hex}"
    values = [str(number).encode() for number in range(2 * RECORDS_PER_BATCH)]
    bulk.write(topic, ((b"7", value) for value in values))
    bulk.flush()
    assert [one.value() for one in read_to_end(bootstrap, [topic])] == values


@pytest.mark.slow
def test_a_record_that_librdkafka_refuses_is_a_failure(bootstrap: str) -> None:
    bulk = BulkProducer(producer(bootstrap, message_max_bytes=2000))
    topic = f"t{uuid.uuid4().hex}"
    bulk.write(topic, [(b"7", b"x"), (b"7", bytes(3000)), (b"7", b"y")])
    with pytest.raises(DeliveryError, match=f"{topic}: .*MSG_SIZE_TOO_LARGE"):
        bulk.flush()
    assert [one.value() for one in read_to_end(bootstrap, [topic])] == [b"x", b"y"]


@pytest.mark.slow
def test_what_kafka_does_not_take_is_told() -> None:
    nobody = producer("127.0.0.1:1", delivery_timeout_ms=300, socket_timeout_ms=200, message_timeout_ms=300)
    bulk = BulkProducer(nobody)
    bulk.write("filter", [(b"7", b"x")])
    with pytest.raises(DeliveryError, match="filter: "):
        bulk.flush()


@dataclass
class Written:
    """Takes what is written."""

    records: list[tuple[str, bytes | None]] = field(default_factory=list)

    def write(self, topic: str, value: bytes | None, **_more: object) -> None:
        """Take a record."""
        self.records.append((topic, value))


def test_copies_are_written_topic_by_topic_each_in_order() -> None:
    written = Written()
    copies = GatheredCopies(written)  # type: ignore[arg-type]
    alerts = [bytes([number]) for number in range(4)]
    for alert in alerts:
        for topic in ("b", "a"):
            copies.write(Record(topic, alert))
    assert written.records == []
    copies.write_all()
    assert written.records == [*(("a", one) for one in alerts), *(("b", one) for one in alerts)]
    copies.write_all()
    assert len(written.records) == 8


def test_no_more_is_gathered_than_may_be_an_alert_counting_once() -> None:
    written = Written()
    copies = GatheredCopies(written, most=250)  # type: ignore[arg-type]
    for alert in (bytes(100), bytes(101), bytes(102)):
        for topic in "cab":
            copies.write(Record(topic, alert))
    assert "".join(topic for topic, _ in written.records) == "aabbccc"
    copies.write_all()
    assert len(written.records) == 9
