"""A receiver: takes a topic's records, by multicast or from Kafka, and tells what it got and when.

Its order: ``bootstrap``, ``topic``, ``wanted`` (records), ``group`` (empty for Kafka alone,
``auto`` for the channel that covers ``where``), ``interface``.  It ends after so many records, or
after ``patience`` [s] without one, `STARTS` times as long before the first.  Records are not
decoded: what is measured is how they come.
"""

import time
from collections.abc import Callable, Mapping
from itertools import compress
from typing import Any

import numpy as np
from confluent_kafka import Message

from nightwire.benchmarks.workers.worker import emit, first_order
from nightwire.consumers.source import AutoGroup, GroupChoice, Listener, MulticastSource, Plan, RecordSource
from nightwire.core.datagrams import channel_judge, parse_group
from nightwire.core.kafka import RecordFetcher, consumer
from nightwire.schemas import AlertDecoder, SchemaRegistry

AT_ONCE = 512
STARTS = 6
"""The first record is waited for so many times as long: other receivers are started meanwhile."""


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
        topic, interface, auto = order["topic"], order["interface"], group == "auto"
        address = None if auto else parse_group(group, interface)
        decoder = AlertDecoder(SchemaRegistry(order.get("registry")))
        plan = Plan([topic], start="live", multicast=address or AutoGroup(interface))
        surveys, where = {topic: topic.removeprefix("alerts.")}, order.get("where")
        choice = GroupChoice(bootstrap, surveys, where, interface) if auto else None
        listener, repair = Listener(address, bootstrap, [topic], choice), RecordFetcher(bootstrap)
        source = MulticastSource(client, plan, listener=listener, repair=repair, decoder=decoder)
    source.open()
    return source


def judge_of(order: Mapping[str, Any]) -> Callable[[list[Message]], list[Message]]:
    """Return what chooses those of some records that are wanted, as a reader does."""
    if not (where := order.get("where")):
        return lambda messages: messages
    judge = channel_judge(where, order["topic"].removeprefix("alerts."), AlertDecoder(SchemaRegistry(None)))
    return lambda messages: [*compress(messages, judge([one.value() for one in messages]))]


def receive(order: Mapping[str, Any]) -> None:
    """Follow an order."""
    source, found = source_of(order), Findings()
    ready, ways, wants = False, list[str](), judge_of(order)
    deadline = time.monotonic() + STARTS * order["patience"]
    while found.count < order["wanted"] and time.monotonic() < deadline:
        for message in wants(source.take(AT_ONCE, 0.1)):
            size = len(message.value() or b"")
            found.note(message.partition() or 0, message.offset() or 0, message.timestamp()[1], size)
            deadline = time.monotonic() + order["patience"]
        if ready and source.way != "both" and ways[-1:] != [source.way]:
            ways.append(source.way)
        if not ready and (source.way.startswith("multicast") or not order["group"]):
            emit({"ready": True})
            ready = True
    more = {"repaired": source.repaired, "dropped": dict(source.dropped)} if order["group"] else {}  # type: ignore[attr-defined]
    emit({**found.told(), **more, "way": source.way, "ways": ways, "cpu_s": time.process_time()})
    source.close()


if __name__ == "__main__":
    receive(first_order())
