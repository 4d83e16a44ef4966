"""A worker that sends or takes typed records, or the same bytes.

``python -m nightwire.benchmarks.scenarios.typed.worker '{"bootstrap": …, "warm": …}'`` follows
orders as `worker.serve` describes.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import cycle, islice
from typing import Any

from nightwire.benchmarks.environment.alert_pool import ReadyMessage
from nightwire.benchmarks.scenarios.typed.records import OTHER, SCHEMA, records_of, value_of
from nightwire.benchmarks.workers.alerts.feed import RawProducer
from nightwire.benchmarks.workers.alerts.reader import TopicReader, handler
from nightwire.benchmarks.workers.alerts.sender import Source, send
from nightwire.benchmarks.workers.worker import Order, Work, serve
from nightwire.core.kafka import Writer, producer
from nightwire.schemas import Codec

FIELDS = [field["name"] for field in SCHEMA["fields"]]


@contextmanager
def sending(order: Order) -> Iterator[Work]:
    """Send ``count`` records of ``size`` to ``topic``, typed or ``raw``; finds `Sent`."""
    source = source_of(order, islice(cycle(records_of(order["size"])), order["count"]))
    source.connect(order["warm"])
    yield lambda: vars(send(source))


def source_of(order: Order, records: Iterable[Any]) -> Source:
    """Return what sends *records* uncompressed: our codec and writer, or raw bytes."""
    bootstrap, topic, codec = order["bootstrap"], order["topic"], Codec(SCHEMA)
    if order["raw"]:
        raw = RawProducer(bootstrap, topic, compression_type="none")
        ready = [ReadyMessage(b"", value_of(one, codec)) for one in records]
        return Source(ready, raw.send, raw.flush, raw.client)
    client = producer(bootstrap, compression_type="none")
    writer, records = Writer(client), list(records)
    codec.encode(records[0])  # compiles what it needs, before the clock starts
    return Source(records, lambda one: writer.write(topic, value_of(one, codec)), writer.flush, client)


@contextmanager
def taking(order: Order) -> Iterator[Work]:
    """Take ``count`` records from the ``topic``; finds `ReadStats`.

    Its ``work`` is ``bytes`` (nothing), ``dicts``, ``columns``, or ``other``: dictionaries of
    another version.
    """
    other = order["work"] == "other"
    codec = Codec(SCHEMA, reader=OTHER if other else None)
    handle = handler("dicts" if other else order["work"], codec, FIELDS)
    with TopicReader(order["bootstrap"], [order["topic"]], handle, whole=True) as reader:
        yield lambda: vars(reader.read(order["count"]))


if __name__ == "__main__":
    serve({"send": sending, "take": taking})
