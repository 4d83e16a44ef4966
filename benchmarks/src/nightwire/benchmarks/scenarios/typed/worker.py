"""A worker that sends or takes typed records, or the same bytes.

``python -m nightwire.benchmarks.scenarios.typed.worker '{"bootstrap": …, "warm": …}'`` follows
orders as `worker.serve` describes.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import cycle, islice
from typing import Any

import numpy as np

from nightwire.benchmarks.environment.alert_pool import ReadyMessage
from nightwire.benchmarks.workers.alerts.feed import RawProducer
from nightwire.benchmarks.workers.alerts.reader import TopicReader, handler
from nightwire.benchmarks.workers.alerts.sender import Source, send
from nightwire.benchmarks.workers.worker import Order, Work, serve
from nightwire.core.kafka import Writer, producer
from nightwire.schemas import Codec
from nightwire.schemas.wire import HEADER, frame

Record = dict[str, Any]

SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "wind",
    "namespace": "nightwire.bench",
    "fields": [
        {"name": "step", "type": "int"},
        {"name": "text", "type": "string"},
        {"name": "velocity", "type": {"type": "array", "items": "double"}},
    ],
}
OTHER: dict[str, Any] = {
    "type": "record",
    "name": "wind",
    "namespace": "nightwire.bench",
    "fields": [
        {"name": "wind_velocity", "aliases": ["velocity"], "type": {"type": "array", "items": "double"}},
        {"name": "step", "type": "double"},
        {"name": "note", "type": ["null", "string"], "default": None},
    ],
}
"""What another receiver wants of it: renamed, widened, left out, added, in another order."""
SCHEMA_ID = 1
DOUBLE = 8
"""[byte]"""
BESIDE = 16
"""Room for all but the doubles, at least. [byte]"""
DISTINCT = 8
"""Records of a size that are taken in turn."""


def records_of(size: int) -> list[Record]:
    """Return distinct records of *size* [byte] in Kafka; the text takes what doubles leave.

    Raises:
        ValueError: No record is so small.
    """
    codec, many = Codec(SCHEMA), (size - BESIDE) // DOUBLE
    if many < 1:
        raise ValueError(f"no record has {size} bytes; the smallest has {BESIDE + DOUBLE}")
    noise = np.random.default_rng(size)
    plain = [
        {"step": step, "text": "", "velocity": noise.standard_normal(many).tolist()}
        for step in range(DISTINCT)
    ]
    return [one | {"text": "." * (size - len(value_of(one, codec)))} for one in plain]


def value_of(record: Record, codec: Codec) -> bytes:
    """Return *record* as a value in Kafka, in wire format."""
    return frame(SCHEMA_ID, codec.encode(record))


def body_size(size: int) -> int:
    """Return the size of the Avro body in a value of *size*. [byte]"""
    return size - HEADER.size


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
