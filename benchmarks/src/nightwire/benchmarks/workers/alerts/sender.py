"""A process that sends: loads its alerts, gets in place, waits for the word, sends, and says when.

``python -m nightwire.benchmarks.workers.alerts.sender '{"bootstrap": …}'`` prints one JSON line when it is in place, begins
when its standard input is closed, and prints one line with its times at the end.  They are of the machine's
monotonic clock, as those of `_reader`.
"""

import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
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
from nightwire.benchmarks.workers.worker import emit

VISIT = 2026_0104_00001


@dataclass(frozen=True)
class Load:
    """What a sender sends.

    Attributes:
        alerts: How many.
        first: Number of the first, so that no two senders send the same.
        stamps: Whether the alerts carry their three stamps.
        fixed: Whether one alert of middling size is sent again and again, rather than alerts of real sizes.
        ready: Whether it is ready-made bytes through bare librdkafka, rather than dictionaries through
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


def chosen_from(pool: Sequence[Alert], load: Load) -> list[Alert]:
    """Return the alerts of *pool* that *load* goes through in turn."""
    chosen = [alert_of_mean_size(pool)] if load.fixed else list(pool[: load.alerts])
    return chosen if load.stamps else [without_stamps(alert) for alert in chosen]


def source_of(load: Load, pool: Sequence[Alert], bootstrap: str, topic: str) -> Source:
    """Return what *load* says, taken from *pool*, ready to go to *topic*."""
    settings = {"compression_type": load.compression}
    if load.ready:
        bare = RawProducer(bootstrap, topic, **settings)
        return Source(
            cycled(ready_messages(pool), load.alerts, load.first), bare.send, bare.flush, bare.client
        )
    writer, codec, client = alert_writer(bootstrap, topic, **settings)
    codec.encode(pool[0])
    alerts = patched(pool, load.alerts, visit=VISIT, first=load.first)
    return Source(alerts, partial(writer.write, visit=VISIT), writer.flush, client)


def send(source: Source, *, flush_each: bool) -> Sent:
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

    *order* has ``bootstrap``, ``topic``, ``load`` (the fields of `Load`), ``pool`` (a file, see `load_pool`),
    and ``warm``: a topic for a record ahead of the clock, so that connection and producer id are there.
    """
    load = Load(**order["load"])
    pool = chosen_from(load_pool(Path(order["pool"])), load)
    source = source_of(load, pool, order["bootstrap"], order["topic"])
    source.client.produce(order["warm"], b"warm")
    source.client.flush(30)
    emit({"ready": True})
    sys.stdin.read()
    return vars(send(source, flush_each=load.flush_each)) | vars(own_traffic())


if __name__ == "__main__":
    emit(run(json.loads(sys.argv[1])))
