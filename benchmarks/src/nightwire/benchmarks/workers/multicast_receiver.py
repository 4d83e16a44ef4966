"""A receiver: takes a topic's records, by multicast or from Kafka, and tells what it got and when.

Its order: ``bootstrap``, ``topic``, ``wanted`` (records), ``group`` (empty for Kafka alone),
``interface``.  It ends after so many records, or after ``patience`` [s] without one.  Records are
not decoded: what is measured is how they come.
"""

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from nightwire.benchmarks.workers.worker import emit, first_order
from nightwire.consumers.source import Listener, MulticastSource, Plan, RecordSource
from nightwire.core.datagrams import parse_group
from nightwire.core.kafka import RecordFetcher, consumer
from nightwire.schemas import AlertDecoder, SchemaRegistry

AT_ONCE = 512


class Findings:
    """What a receiver got."""

    def __init__(self) -> None:
        self.count = self.doubled = self.disordered = self.bytes = 0
        self.last = 0.0
        self._next: dict[int, int] = {}
        self._seen: dict[int, set[int]] = {}
        self._delays: list[float] = []

    def note(self, partition: int, offset: int, written_ms: int, size: int) -> None:
        """Note a record."""
        seen = self._seen.setdefault(partition, set())
        self.doubled += offset in seen
        self.disordered += offset < self._next.get(partition, 0)
        seen.add(offset)
        self._next[partition] = offset + 1
        self.count, self.bytes, self.last = self.count + 1, self.bytes + size, time.time()
        self._delays.append(self.last * 1000 - written_ms)

    def told(self) -> dict[str, Any]:
        """Return it as JSON can hold it; delays in ms."""
        delays = self._delays or [float("nan")]
        p50, p99 = np.percentile(delays, [50, 99]).tolist()
        return {
            "count": self.count,
            "different": sum(map(len, self._seen.values())),
            "doubled": self.doubled,
            "disordered": self.disordered,
            "bytes": self.bytes,
            "p50_ms": p50,
            "p99_ms": p99,
            "last": self.last,
        }


def source_of(order: Mapping[str, Any]) -> RecordSource:
    """Return the source of an order, open."""
    bootstrap, group = order["bootstrap"], order["group"]
    client = consumer(bootstrap, enable_partition_eof=True)
    if not group:
        source = RecordSource(client, Plan([order["topic"]], start="live"))
    else:
        address = parse_group(group, order["interface"])
        decoder = AlertDecoder(SchemaRegistry(order.get("registry")))
        plan = Plan([order["topic"]], start="live", multicast=address)
        listener = Listener(address, bootstrap, [order["topic"]])
        source = MulticastSource(
            client, plan, listener=listener, repair=RecordFetcher(bootstrap), decoder=decoder
        )
    source.open()
    return source


def receive(order: Mapping[str, Any]) -> None:
    """Follow an order."""
    source, found = source_of(order), Findings()
    ready, ways = False, list[str]()
    deadline = time.monotonic() + order["patience"]
    while found.count < order["wanted"] and time.monotonic() < deadline:
        for message in source.take(AT_ONCE, 0.1):
            size = len(message.value() or b"")
            found.note(message.partition() or 0, message.offset() or 0, message.timestamp()[1], size)
            deadline = time.monotonic() + order["patience"]
        if ready and source.way != "both" and ways[-1:] != [source.way]:
            ways.append(source.way)
        if not ready and (source.way == "multicast" or not order["group"]):
            emit({"ready": True})
            ready = True
    more = {"repaired": source.repaired, "dropped": dict(source.dropped)} if order["group"] else {}  # type: ignore[attr-defined]
    emit({**found.told(), **more, "way": source.way, "ways": ways, "cpu_s": time.process_time()})
    source.close()


if __name__ == "__main__":
    receive(first_order())
