"""A worker that stays: it sends, takes, or echoes messages, as one order after another says.

``python -m nightwire.benchmarks.scenarios.messages.worker '{"bootstrap": …, "warm": …}'`` follows
orders as `worker.serve` describes.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from nightwire.benchmarks import RunError
from nightwire.benchmarks.environment.alert_pool import ReadyMessage, load_pool, patched, ready_messages
from nightwire.benchmarks.scenarios.messages.alerts import STAMP
from nightwire.benchmarks.workers.alerts.feed import RawProducer, alert_writer, cycled
from nightwire.benchmarks.workers.alerts.reader import PATIENCE, ReadStats, TopicReader, is_record
from nightwire.benchmarks.workers.alerts.sender import VISIT, send, source_of
from nightwire.benchmarks.workers.worker import Order, Work, input_ended, serve
from nightwire.consumers import AlertReader
from nightwire.core.kafka import consumer

WARM_UP = 5
"""Round trips of each size that are not counted."""
TICK = 0.2
"""Between two looks at whether to stop. [s]"""

Stopped = Callable[[], bool]


@dataclass(frozen=True)
class Endpoint:
    """One end.

    Attributes:
        send: Sends one thing, and returns when Kafka has acknowledged it.
        received: What the other end sends.
        same: Whether two things are the same message.
    """

    send: Callable[[Any], None]
    received: Iterator[Any]
    same: Callable[[Any, Any], bool]


@contextmanager
def endpoint(order: Mapping[str, Any], stopped: Stopped) -> Iterator[Endpoint]:
    """Yield the end that sends to *order*'s topic ``out``, and receives from its topic ``back``.

    Args:
        order: Has ``bootstrap`` too, and ``ready``: raw librdkafka is wanted.
        stopped: Asked several times a second whether to stop.
    """
    with (_raw if order["ready"] else _ours)(order["bootstrap"], order["out"], order["back"], stopped) as one:
        yield one


def things_to_send(order: Mapping[str, Any], pool: Path) -> list[Any]:
    """Return what *order* sends of the file *pool*, warm-up included; no two are equal."""
    count, alerts = WARM_UP + order["trips"], load_pool(pool)
    if order["ready"]:
        return cycled(ready_messages(alerts), count)
    return list(patched(alerts, count, visit=VISIT))


def round_trips(peer: Endpoint, things: Sequence[Any], seconds: float) -> list[float]:
    """Send each of *things* when the one before has come back; return how long each took. [s]

    The first few are not counted.  It ends after *seconds*, but not before one was counted.

    Raises:
        RunError: Something else came back, or nothing.
    """
    taken: list[float] = []
    deadline = time.monotonic() + seconds
    for thing in things:
        began = time.monotonic()
        peer.send(thing)
        answer = next(peer.received, None)
        taken.append(time.monotonic() - began)
        if answer is None or not peer.same(thing, answer):
            raise RunError(f"message {len(taken)} did not come back as it was sent")
        if time.monotonic() > deadline and len(taken) > WARM_UP:
            break
    return taken[WARM_UP:]


@contextmanager
def _ours(bootstrap: str, out: str, back: str, stopped: Stopped) -> Iterator[Endpoint]:
    writer, _codec, _client = alert_writer(bootstrap, out)

    def send(alert: Any) -> None:
        writer.write(alert, visit=VISIT)
        writer.flush()

    with AlertReader(
        back, bootstrap=bootstrap, start="beginning", timeout=PATIENCE, survey="sim", stopped=stopped
    ) as reader:
        yield Endpoint(send, (received.alert for received in reader), _same_alert)


def _same_alert(sent: Any, received: Any) -> bool:
    names = "diaSourceId", STAMP
    return [sent[name] for name in names] == [received[name] for name in names]


@contextmanager
def _raw(bootstrap: str, out: str, back: str, stopped: Stopped) -> Iterator[Endpoint]:
    raw, client = RawProducer(bootstrap, out), consumer(bootstrap)

    try:
        client.assign([TopicPartition(back, 0, OFFSET_BEGINNING)])
        yield Endpoint(
            lambda message: raw.send_all([message]),
            _messages(client, stopped),
            lambda sent, received: bool(sent == received),
        )
    finally:
        client.close()


def _messages(client: Consumer, stopped: Stopped) -> Iterator[ReadyMessage]:
    last = time.monotonic()
    while not stopped() and time.monotonic() - last < PATIENCE:
        message = client.poll(TICK)
        if message is not None and is_record(message):
            last = time.monotonic()
            yield ReadyMessage(message.key() or b"", message.value() or b"")


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
