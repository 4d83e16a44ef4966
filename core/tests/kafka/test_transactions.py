"""Readers and transactions: open ones are unreadable, markers are offsets without a record."""

import threading
from collections.abc import Callable
from uuid import uuid4

import pytest

from nightwire.core.kafka import consumer, producer, read_to_end, watermarks

pytestmark = pytest.mark.kafka


def test_readers_stop_before_an_open_transaction_and_a_settled_one_waits_for_it(
    kafka: str, fresh_topic: Callable[..., str]
) -> None:
    topic = fresh_topic("transactions")
    writer = producer(
        kafka, transactional_id=uuid4().hex, transaction_timeout_ms=60_000, delivery_timeout_ms=60_000
    )
    writer.init_transactions(60)
    for values, end in ([b"1", b"2", b"3"], "commit"), ([b"lost"], "abort"):
        writer.begin_transaction()
        for value in values:
            writer.produce(topic, value)
        writer.flush(60)
        (writer.commit_transaction if end == "commit" else writer.abort_transaction)(60)
    writer.begin_transaction()
    writer.produce(topic, b"4")
    writer.flush(60)

    def read(*, settled: bool) -> list[bytes]:
        return [message.value() or b"" for message in read_to_end(kafka, [topic], settled=settled)]

    reader = consumer(kafka)
    # three records, a marker, one that was aborted, its marker
    assert watermarks(reader, topic, 0) == (0, 6)
    reader.close()
    assert read(settled=False) == [b"1", b"2", b"3"]
    found: list[bytes] = []
    waiting = threading.Thread(target=lambda: found.extend(read(settled=True)))
    waiting.start()
    writer.commit_transaction(60)
    waiting.join(60)
    assert found == [b"1", b"2", b"3", b"4"]
