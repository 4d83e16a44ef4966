"""A process that stays: it is told what to do, does it, says what it found, and is told the next thing.

``python -m nightwire.benchmarks.scenarios.messages.worker '{"bootstrap": …, "warm": …}'`` takes orders from its
standard input, a JSON line each.  To each it prints a line when it is in place, begins at the next line that
it gets, and prints a line with its findings.  Times are of the machine's monotonic clock.
"""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any

from nightwire.benchmarks.environment.alert_pool import load_pool
from nightwire.benchmarks.scenarios.messages.conversation import (
    Endpoint,
    endpoint,
    round_trips,
    things_to_send,
)
from nightwire.benchmarks.workers.alerts.reader import PATIENCE, ReadStats, TopicReader
from nightwire.benchmarks.workers.alerts.sender import Load, chosen_from, send, source_of
from nightwire.benchmarks.workers.worker import Order, Parts, Work, serve
from nightwire.consumers import AlertReader
from nightwire.core.kafka import admin, consumer


@contextmanager
def sending(order: Order) -> Iterator[Work]:
    """Send the ``load`` to the ``topic``; finds the fields of `Sent`.

    All dictionaries are made before it begins; a record goes to the topic ``warm`` ahead of the clock, so
    that connection and producer id are there.
    """
    load = Load(**order["load"])
    pool = chosen_from(load_pool(Path(order["pool"])), load)
    source = source_of(load, pool, order["bootstrap"], order["topic"])
    source = replace(source, things=list(source.things))
    source.client.produce(order["warm"], b"warm")
    source.client.flush(30)
    yield lambda: vars(send(source, flush_each=False))


@contextmanager
def taking(order: Order) -> Iterator[Work]:
    """Take ``expect`` messages from the ``topic``; finds the fields of `ReadStats`."""
    topics, bootstrap, expect = [order["topic"]], order["bootstrap"], order["expect"]
    if not order["ready"]:
        habits: dict[str, Any] = {"start": "beginning", "timeout": PATIENCE, "survey": "sim"}
        with AlertReader(topics, bootstrap=bootstrap, limit=expect, **habits) as alerts:
            yield lambda: vars(take_alerts(alerts))
        return
    client = consumer(bootstrap)
    try:
        reader = TopicReader(client, admin(bootstrap), topics, lambda _messages: None, whole=True)
        yield partial(_take_bytes, reader, expect)
    finally:
        client.close()


def take_alerts(reader: AlertReader) -> ReadStats:
    """Read until *reader* ends: that is at its limit, or when nothing more comes."""
    done, cpu = ReadStats(began=time.monotonic()), time.process_time()
    for received in reader:
        done.first = done.first or time.monotonic()
        done.records += 1
        done.size += len(received.value)
    done.last, done.cpu = time.monotonic(), time.process_time() - cpu
    return done


def _take_bytes(reader: TopicReader, expect: int) -> dict[str, Any]:
    cpu = time.process_time()
    reader.read(lambda: reader.findings.records >= expect)
    reader.findings.cpu = time.process_time() - cpu
    return vars(reader.findings)


@contextmanager
def pinging(order: Order) -> Iterator[Work]:
    """Send messages of each size in ``pools``, one when the other is back; finds their round trips. [s]"""
    things = {size: things_to_send(order, Path(pool)) for size, pool in order["pools"].items()}
    with endpoint(order, lambda: False) as one:
        yield lambda: {size: round_trips(one, some, order["seconds"]) for size, some in things.items()}


@contextmanager
def echoing(order: Order) -> Iterator[Work]:
    """Send back what comes until one more line is read; finds how many it were."""
    asked = Event()
    with endpoint(order, asked.is_set) as one:
        yield lambda: {"records": _echo(one, asked)}


def _echo(one: Endpoint, asked: Event) -> int:
    def listen() -> None:
        sys.stdin.readline()
        asked.set()

    Thread(target=listen, daemon=True).start()
    records = 0
    for thing in one.received:
        one.send(thing)
        records += 1
    return records


PARTS: Parts = {
    "send": sending,
    "take": taking,
    "ping": pinging,
    "echo": echoing,
}


if __name__ == "__main__":
    serve(json.loads(sys.argv[1]), PARTS)
