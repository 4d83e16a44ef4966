"""The other process: sends or takes typed records, or the same bytes; it follows orders as `messages._peer`.

``python -m nightwire.benchmarks.scenarios.typed.worker '{"bootstrap": …, "warm": …}'``
"""

import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import cycle, islice
from typing import Any

from confluent_kafka import Message

from nightwire.benchmarks.environment.alert_pool import ReadyMessage as Ready
from nightwire.benchmarks.scenarios.typed.records import OTHER, SCHEMA, records_of, value_of
from nightwire.benchmarks.workers.alerts.feed import RawProducer
from nightwire.benchmarks.workers.alerts.reader import Handle, TopicReader, bodies
from nightwire.benchmarks.workers.alerts.sender import Source, send
from nightwire.benchmarks.workers.worker import Order, serve
from nightwire.benchmarks.workers.worker import Work as Part
from nightwire.core.kafka import Writer, admin, consumer, producer
from nightwire.schemas import Codec

FIELDS = [field["name"] for field in SCHEMA["fields"]]


@contextmanager
def sending(order: Order) -> Iterator[Part]:
    """Send ``count`` records of ``size`` to the ``topic``, typed or ``raw``; finds the fields of `Sent`."""
    source = source_of(order, islice(cycle(records_of(order["size"])), order["count"]))
    source.client.produce(order["warm"], b"warm")
    source.client.flush(30)
    yield lambda: vars(send(source, flush_each=False))


def source_of(order: Order, records: Iterable[Any]) -> Source:
    """Return what sends *records*, uncompressed: through our codec and writer, or as ready-made bytes."""
    bootstrap, topic, codec = order["bootstrap"], order["topic"], Codec(SCHEMA)
    if order["raw"]:
        bare = RawProducer(bootstrap, topic, compression_type="none")
        ready = [Ready(b"", value_of(one, codec)) for one in records]
        return Source(ready, bare.send, bare.flush, bare.client)
    client = producer(bootstrap, compression_type="none")
    writer, records = Writer(client), list(records)
    codec.encode(records[0])  # compiles what it needs, before the clock starts
    return Source(records, lambda one: writer.write(topic, value_of(one, codec)), writer.flush, client)


@contextmanager
def taking(order: Order) -> Iterator[Part]:
    """Take ``count`` records from the ``topic``, and do with them what ``work`` says; finds `Findings`."""
    client = consumer(order["bootstrap"])
    try:
        done = work(order["work"])
        reader = TopicReader(client, admin(order["bootstrap"]), [order["topic"]], done, whole=True)
        yield partial(_take, reader, order["count"])
    finally:
        client.close()


def _take(reader: TopicReader, count: int) -> dict[str, Any]:
    began = time.process_time()
    reader.read(lambda: reader.findings.records >= count)
    reader.findings.cpu = time.process_time() - began
    return vars(reader.findings)


def work(name: str) -> Handle:
    """Return what is done with messages: ``bytes`` (nothing), ``dicts``, ``columns``, or ``other`` dicts."""
    codec = Codec(SCHEMA, reader=OTHER if name == "other" else None)

    def to_dicts(messages: Sequence[Message]) -> None:
        for body in bodies(messages):
            codec.decode(body)

    def to_columns(messages: Sequence[Message]) -> None:
        codec.columns(bodies(messages), FIELDS)

    if name == "bytes":
        return lambda _messages: None
    if name == "columns":
        codec.columns([], FIELDS)  # imports what it needs, before the clock starts
        return to_columns
    codec.decode(codec_sample())
    return to_dicts


def codec_sample() -> bytes:
    """Return the body of an empty record."""
    return Codec(SCHEMA).encode({"step": 0, "text": "", "velocity": []})


if __name__ == "__main__":
    serve(json.loads(sys.argv[1]), {"send": sending, "take": taking})
