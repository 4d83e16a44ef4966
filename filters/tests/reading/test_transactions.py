"""The filters' plans end where readers can read: before a transaction that is open."""

from collections.abc import Callable
from uuid import uuid4

import pytest

from nightwire.core.kafka import admin, producer
from nightwire.filters.model.offsets import OffsetRange
from nightwire.filters.reading.fetch import fetch, partition_bounds, range_consumer
from tests._waiting import until

pytestmark = pytest.mark.kafka


def test_a_plan_leaves_an_open_transaction_out_and_a_range_may_end_with_a_marker(
    kafka: str, fresh_topic: Callable[..., str]
) -> None:
    topic = fresh_topic("transactions")
    writer = producer(
        kafka, transactional_id=uuid4().hex, transaction_timeout_ms=60_000, delivery_timeout_ms=60_000
    )
    writer.init_transactions(60)
    writer.begin_transaction()
    writer.produce(topic, b"1")
    writer.commit_transaction(60)
    writer.begin_transaction()
    writer.produce(topic, b"2")
    writer.flush(60)
    ends = partition_bounds(admin(kafka), [(topic, 0)])
    assert ends == {(topic, 0): 2}  # a record and its marker
    found = [
        message for some in fetch(range_consumer(kafka), OffsetRange(topic, 0, 0, 2)) for message in some
    ]
    assert [message.value() for message in found] == [b"1"]
    writer.abort_transaction(60)
    until(lambda: partition_bounds(admin(kafka), [(topic, 0)]) == {(topic, 0): 4}, "the marker is there")
    assert list(fetch(range_consumer(kafka), OffsetRange(topic, 0, 2, 4))) == []
