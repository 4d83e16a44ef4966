"""Reading ranges of offsets, from a real Kafka."""

from collections.abc import Callable

import pytest
from confluent_kafka import KafkaException, TopicPartition

from nightwire.core.kafka import Writer, producer, watermarks
from nightwire.core.kafka import admin as admin_client
from nightwire.filters.model.offsets import OffsetRange
from nightwire.filters.reading.fetch import ExpiredCount, fetch, partition_bounds, range_consumer

pytestmark = pytest.mark.kafka


@pytest.fixture
def topic(kafka: str, fresh_topic: Callable[..., str]) -> str:
    """Return a topic with 50 records."""
    name = fresh_topic("ranges")
    writer = Writer(producer(kafka))
    for number in range(50):
        writer.write(name, str(number).encode())
    writer.flush()
    return name


def numbers(kafka: str, wanted: OffsetRange, gone: ExpiredCount | None = None) -> list[int]:
    """Return what is in the records of a range."""
    consumer = range_consumer(kafka)
    try:
        found = fetch(consumer, wanted, gone, patience=10)
        return [int(message.value() or b"") for messages in found for message in messages]
    finally:
        consumer.close()


def test_a_range_is_read_whole_and_no_further(kafka: str, topic: str) -> None:
    assert numbers(kafka, OffsetRange(topic, 0, 10, 20)) == list(range(10, 20))
    assert numbers(kafka, OffsetRange(topic, 0, 49, 50)) == [49]


def test_a_range_whose_last_offset_is_no_record_ends_with_the_partition(kafka: str, topic: str) -> None:
    """A transaction's marker takes an offset that no reader ever sees."""
    one = producer(kafka, transactional_id="test-marker", transaction_timeout_ms=120_000)
    one.init_transactions(20)
    one.begin_transaction()
    one.produce(topic, b"50")
    one.commit_transaction(20)
    assert numbers(kafka, OffsetRange(topic, 0, 48, 52)) == [48, 49, 50]


def test_what_retention_deleted_is_counted_and_the_rest_read(kafka: str, topic: str) -> None:
    admin = admin_client(kafka)
    admin.delete_records([TopicPartition(topic, 0, 30)])[TopicPartition(topic, 0)].result(20)
    gone = ExpiredCount()
    assert numbers(kafka, OffsetRange(topic, 0, 10, 40), gone) == list(range(30, 40))
    assert gone.count == 20
    everything = ExpiredCount()
    assert numbers(kafka, OffsetRange(topic, 0, 10, 20), everything) == []
    assert everything.count == 10
    with pytest.raises(KafkaException):
        numbers(kafka, OffsetRange(topic, 0, 10, 40))


def test_where_partitions_begin_and_end(kafka: str, topic: str) -> None:
    consumer, admin = range_consumer(kafka), admin_client(kafka)
    assert watermarks(consumer, topic, 0) == (0, 50)
    assert partition_bounds(admin, [(topic, 0)]) == {(topic, 0): 50}
    assert partition_bounds(admin, [(topic, 0)], earliest=True) == {(topic, 0): 0}
    assert partition_bounds(admin, []) == {}
    consumer.close()
