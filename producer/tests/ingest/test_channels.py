"""What `nightwire ingest` commits is copied to the channels of its topic, and nothing else."""

import threading
from collections.abc import Iterator

import pytest

from nightwire.core.channels import HEADER, MARK, ChannelCopies, coverage_of
from nightwire.core.kafka import headers_of, read_to_end
from nightwire.multicast.channel_admin import make_channel, remove_channel
from nightwire.producer.ingest.items import Item, Output
from nightwire.producer.ingest.transactional_sink import TransactionalSink, transactional_producer
from nightwire.schemas import SIM_ALERT_ID
from nightwire.schemas.topics import channel
from nightwire.schemas.wire import frame
from tests._channels import SIM, TOPIC, alert, ends
from tests._waiting import until

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


def items(first: int) -> list[Item]:
    """Return a hundred."""
    found = []
    for number in range(first, first + 100):
        value = frame(SIM_ALERT_ID, SIM.known.encode(alert(number)))
        outputs = [Output(b"%d" % number, value, [("survey", b"sim")], None)]
        found.append(Item(("theirs", 0), number, number, outputs=outputs, value=value))
    return found


@pytest.fixture
def sink(kafka: str) -> Iterator[TransactionalSink]:
    """Yield a sink whose topic has a channel of the brightest fifth."""
    make_channel(kafka, TOPIC, "mirrored", "diaSource.psfFlux >= 80")
    copies = ChannelCopies(kafka, TOPIC, "sim", SIM)
    copies.start()
    until(lambda: "mirrored" in copies.names)
    client = transactional_producer(kafka, "sim")
    one = TransactionalSink(client, "sim", "theirs", threading.Event(), channels=copies)
    one.open()
    yield one
    copies.close()
    remove_channel(kafka, TOPIC, "mirrored")


def test_each_commit_is_vouched_for_with_its_mark_and_nothing_that_was_aborted(
    kafka: str, sink: TransactionalSink
) -> None:
    begin = ends(kafka)
    for first in range(0, 500, 100):
        sink.deliver(items(first))
    end = ends(kafka)
    sink.client.begin_transaction()
    for one in items(10_000):
        sink.client.produce(TOPIC, one.outputs[0].value, one.outputs[0].key)
    sink.client.flush(30)
    sink.client.abort_transaction(30)
    sink.deliver(items(500))
    assert sink.channels is not None
    sink.channels.close()
    said, copied = dict[int, set[int]](), list[int]()
    for message in read_to_end(kafka, [channel(TOPIC, "mirrored")]):
        coverage = coverage_of(headers_of(message)[HEADER])
        known = said.setdefault(message.partition() or 0, set())
        known.update(offset for one in coverage.ranges for offset in one)
        if coverage.offset != MARK:
            copied.append(int(message.key() or b""))
            assert headers_of(message)["survey"] == b"sim"
    assert sorted(copied) == [number for number in range(600) if number % 100 >= 80]
    for (_, partition), first_offset in begin.items():
        assert {*range(first_offset, end[TOPIC, partition] - 1)} <= said[partition]
