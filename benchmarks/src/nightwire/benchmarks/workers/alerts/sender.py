"""A process that sends alerts: it loads them, waits until it may begin, sends, and says when.

``python -m nightwire.benchmarks.workers.alerts.sender '{"bootstrap": …}'`` begins when its standard
input is closed, and prints what `Sent` has.
"""

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from nightwire.benchmarks.environment.alert_pool import (
    Alert,
    alert_of_mean_size,
    load_pool,
    patched,
    ready_messages,
    without_stamps,
)
from nightwire.benchmarks.resources.own_traffic import own_traffic
from nightwire.benchmarks.workers.alerts.feed import COMPRESSION, RawProducer, alert_writer, cycled
from nightwire.benchmarks.workers.worker import emit, first_order

VISIT = 2026_0104_00001


@dataclass(frozen=True)
class Load:
    """What a sender sends.

    Attributes:
        alerts: How many.
        first: Number of the first, so that no two senders send the same.
        stamps: Whether the alerts carry their three stamps.
        fixed: Whether one alert of mean size is sent again and again, not alerts of real sizes.
        ready: Whether it is ready-made bytes through raw librdkafka, not dictionaries through
            `AlertWriter`.
        flush_each: Whether it waits for each acknowledgement before the next alert.
        compression: ``none``, ``lz4``, ``zstd`` or ``snappy``.
    """

    alerts: int
    first: int = 0
    stamps: bool = True
    fixed: bool = False
    ready: bool = False
    flush_each: bool = False
    compression: str = COMPRESSION


@dataclass(frozen=True)
class Sent:
    """How a sender sent.

    Attributes:
        began: When it began; and
        handed: had handed its last alert to librdkafka; and
        acknowledged: had every acknowledgement. [s]
        sent: What it sent over TCP; and
        received: received. [byte]
    """

    began: float
    handed: float
    acknowledged: float
    sent: int = 0
    received: int = 0


@dataclass(frozen=True)
class Source:
    """Things to send, what sends one, what waits for all, and the client below."""

    things: Iterable[Any]
    write: Callable[[Any], object]
    flush: Callable[[], object]
    client: Producer

    def connect(self, topic: str) -> None:
        """Send a record to *topic*, so that connection and producer id are there."""
        self.client.produce(topic, b"warm")
        self.client.flush(30)


def chosen_from(pool: Sequence[Alert], load: Load) -> list[Alert]:
    """Return the alerts of *pool* that *load* goes through in turn."""
    chosen = [alert_of_mean_size(pool)] if load.fixed else list(pool[: load.alerts])
    return chosen if load.stamps else [without_stamps(alert) for alert in chosen]


def source_of(order: Mapping[str, Any]) -> Source:
    """Return what the order's ``load`` says, of its file ``pool``, for its ``topic``."""
    load = Load(**order["load"])
    pool, settings = chosen_from(load_pool(Path(order["pool"])), load), {"compression_type": load.compression}
    if load.ready:
        raw = RawProducer(order["bootstrap"], order["topic"], **settings)
        return Source(cycled(ready_messages(pool), load.alerts, load.first), raw.send, raw.flush, raw.client)
    writer, codec, client = alert_writer(order["bootstrap"], order["topic"], **settings)
    codec.encode(pool[0])
    alerts = patched(pool, load.alerts, visit=VISIT, first=load.first)
    return Source(alerts, partial(writer.write, visit=VISIT), writer.flush, client)


def send(source: Source, *, flush_each: bool = False) -> Sent:
    """Send all of *source*, and return when that was."""
    began = time.monotonic()
    for one in source.things:
        source.write(one)
        if flush_each:
            source.flush()
    handed = time.monotonic()
    source.flush()
    return Sent(began, handed, time.monotonic())


def run(order: dict[str, Any]) -> dict[str, Any]:
    """Do what *order* says, and return when.

    *order* has ``bootstrap``, ``topic``, ``load`` (the fields of `Load`), ``pool`` (a file, see
    `load_pool`), and ``warm`` (a topic for the record of `Source.connect`).
    """
    source = source_of(order)
    source.connect(order["warm"])
    emit({"ready": True})
    sys.stdin.read()
    return vars(send(source, flush_each=order["load"]["flush_each"])) | vars(own_traffic())


if __name__ == "__main__":
    emit(run(first_order()))
