"""A worker that stays: it sends, takes, or echoes messages, as one order after another says.

``python -m nightwire.benchmarks.scenarios.messages.worker '{"bootstrap": …, "warm": …}'`` follows
orders as `worker.serve` describes.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

from nightwire.benchmarks.scenarios.messages.conversation import (
    Endpoint,
    endpoint,
    round_trips,
    things_to_send,
)
from nightwire.benchmarks.workers.alerts.reader import PATIENCE, ReadStats, TopicReader
from nightwire.benchmarks.workers.alerts.sender import send, source_of
from nightwire.benchmarks.workers.worker import Order, Work, input_ended, serve
from nightwire.consumers import AlertReader


@contextmanager
def sending(order: Order) -> Iterator[Work]:
    """Send the ``load`` to the ``topic``; finds the fields of `Sent`.

    All dictionaries are made before it begins.
    """
    source = source_of(order)
    source = replace(source, things=list(source.things))
    source.connect(order["warm"])
    yield lambda: vars(send(source))


@contextmanager
def taking(order: Order) -> Iterator[Work]:
    """Take ``expect`` messages from the ``topic``; finds the fields of `ReadStats`."""
    topics, bootstrap, expect = [order["topic"]], order["bootstrap"], order["expect"]
    if order["ready"]:
        with TopicReader(bootstrap, topics, lambda _messages: None, whole=True) as reader:
            yield lambda: vars(reader.read(expect))
        return
    options: dict[str, Any] = {"start": "beginning", "timeout": PATIENCE, "survey": "sim"}
    with AlertReader(topics, bootstrap=bootstrap, limit=expect, **options) as alerts:
        yield lambda: vars(take_alerts(alerts))


def take_alerts(alerts: AlertReader) -> ReadStats:
    """Read *alerts* to their limit, or until nothing more comes, each decoded whole."""
    stats, cpu = ReadStats(began=time.monotonic()), time.process_time()
    for alert in alerts:
        stats.first = stats.first or time.monotonic()
        stats.records += 1
        stats.size += len(alert.value)
    stats.last, stats.cpu = time.monotonic(), time.process_time() - cpu
    return stats


@contextmanager
def pinging(order: Order) -> Iterator[Work]:
    """Send messages of each size in ``pools`` one by one; finds round trips. [s]"""
    things = {size: things_to_send(order, Path(pool)) for size, pool in order["pools"].items()}
    with endpoint(order, lambda: False) as one:
        yield lambda: {size: round_trips(one, some, order["seconds"]) for size, some in things.items()}


@contextmanager
def echoing(order: Order) -> Iterator[Work]:
    """Send back what comes until one more line is read; finds how many messages it were."""
    asked = Event()
    with endpoint(order, asked.is_set) as one:
        yield lambda: {"records": _echo(one, asked)}


def _echo(one: Endpoint, asked: Event) -> int:
    input_ended(sys.stdin.readline, asked)
    records = 0
    for thing in one.received:
        one.send(thing)
        records += 1
    return records


if __name__ == "__main__":
    serve({"send": sending, "take": taking, "ping": pinging, "echo": echoing})
