"""Writing very many small records."""

import uuid

import pytest

from nightwire.core.kafka import DeliveryError, producer, watermarks
from nightwire.filters.delivery.producers import RECORDS_PER_POLL, BulkProducer
from nightwire.filters.reading.fetch import range_consumer


@pytest.mark.slow
def test_all_are_there_after_flush(bootstrap: str) -> None:
    topic, bulk = f"t{uuid.uuid4().hex}", BulkProducer(producer(bootstrap))
    for _ in range(3 * RECORDS_PER_POLL):
        bulk.write(topic, b"x", b"7")
    bulk.flush()
    consumer = range_consumer(bootstrap)
    ends = [
        watermarks(consumer, topic, part)[1] for part in consumer.list_topics(topic).topics[topic].partitions
    ]
    consumer.close()
    assert sum(ends) == 3 * RECORDS_PER_POLL


@pytest.mark.slow
def test_a_full_queue_is_waited_for(bootstrap: str) -> None:
    bulk = BulkProducer(producer(bootstrap, queue_buffering_max_messages=100))
    topic = f"t{uuid.uuid4().hex}"
    for _ in range(2 * RECORDS_PER_POLL):
        bulk.write(topic, b"x", b"7")
    bulk.flush()


@pytest.mark.slow
def test_what_kafka_does_not_take_is_told() -> None:
    nobody = producer("127.0.0.1:1", delivery_timeout_ms=300, socket_timeout_ms=200, message_timeout_ms=300)
    bulk = BulkProducer(nobody)
    bulk.write("filter", b"x", b"7")
    with pytest.raises(DeliveryError, match="filter: "):
        bulk.flush()
