"""Flows at work, for tests: workers that are processes, alerts, and what arrives."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, KafkaException, Message, TopicPartition

from nightwire.core.kafka import Writer, consumer, headers_of, producer, read_to_end
from nightwire.flows.worker import Worker
from nightwire.schemas import SIM_ALERT_ID, Codec, sim_alert_schema
from nightwire.schemas.wire import frame
from tests._alerts import empty
from tests._waiting import until

VERB = "from nightwire.flows.commands import flow; flow()"
PATIENCE = 60.0


@contextmanager
def worker(log: Path, bootstrap: str, name: str, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a worker until the block ends; it is killed there where it still lives."""
    words = ["serve", "--name", name, "--bootstrap", bootstrap, "--takeover", "2s", *more]
    with log.open("ab") as file:
        child = subprocess.Popen([sys.executable, "-c", VERB, *words], stdout=file, stderr=file)
        try:
            wait_for(lambda: child.poll() is None and b"worker " in log.read_bytes(), log)
            yield child
        finally:
            child.kill()
            child.wait(30)


def wait_for(holds: Callable[[], bool], log: Path | None = None) -> None:
    """Wait until *holds* returns true."""
    until(holds, log.read_text if log else "it never did", PATIENCE, tick=0.2)


def problems(one: Worker) -> dict[str, str]:
    """Return why flows do not run as they should, by name."""
    return {name: flow.problem for name, flow in one.hosted.copy().items() if flow.problem}


def alert(number: int, **source: Any) -> bytes:
    """Return the message of a simulated alert: object *number* % 97, and more of its source."""
    found = empty(sim_alert_schema())
    found["diaSourceId"] = found["diaSource"]["diaSourceId"] = number
    said = {"diaObjectId": number % 97 + 1, "psfFlux": 3631.0, "psfFluxErr": 1.0, "band": "r"}
    found["diaSource"] |= {**said, "midpointMjdTai": 60_000.0, **source}
    return frame(SIM_ALERT_ID, CODEC.encode(found))


CODEC = Codec(sim_alert_schema())


class Stream(threading.Thread):
    """Writes alerts 1 to *count* - 1, so many a second, until it is stopped."""

    def __init__(self, bootstrap: str, topic: str, rate: float) -> None:
        super().__init__(daemon=True)
        self._writer, self._topic, self._rate = Writer(producer(bootstrap)), topic, rate
        self._ended, self.count = threading.Event(), 1

    def run(self) -> None:
        """Write."""
        begin = time.monotonic()
        while not self._ended.wait(0.01):
            while self.count < (time.monotonic() - begin) * self._rate:
                write(self._writer, self._topic, self.count)
                self.count += 1
        self._writer.flush()

    def end(self) -> int:
        """Stop; return how many alerts there are."""
        self._ended.set()
        self.join(60)
        return self.count - 1


class Arrivals:
    """What is committed in a topic, as it comes."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._reader = consumer(bootstrap)
        partitions = self._reader.list_topics(topic, timeout=10).topics[topic].partitions
        self._reader.assign([TopicPartition(topic, one, OFFSET_BEGINNING) for one in partitions])
        self._all: list[Message] = []

    def so_far(self) -> list[Message]:
        """Return what has come until now."""
        while found := self._reader.consume(5000, 0.2):
            self._all += [one for one in found if one.error() is None]
            if len(found) < 5000:
                break
        return self._all

    def close(self) -> None:
        """Read no more."""
        self._reader.close()


def write(writer: Writer, topic: str, number: int, **source: Any) -> None:
    """Write one alert."""
    writer.write(topic, alert(number, **source), key=b"%d" % (number % 97 + 1))


def write_alerts(bootstrap: str, topic: str, numbers: Iterable[int], **source: Any) -> None:
    """Write the alerts of *numbers*, and wait."""
    writer = Writer(producer(bootstrap))
    for number in numbers:
        write(writer, topic, number, **source)
    writer.flush()


def records_in(bootstrap: str, topic: str) -> list[Message]:
    """Return the records of *topic*, those of open transactions too once these have ended."""
    return [*read_to_end(bootstrap, [topic], settled=True)]


def rewound(bootstrap: str, group: str, offset: int) -> bool:
    """Let a terminal's group be at *offset* of its queue; return whether nobody was in it."""
    member = consumer(bootstrap, group=group)
    try:
        said = member.commit(offsets=[TopicPartition(group, 0, offset)], asynchronous=False) or ()
        return all(one.error is None for one in said)
    except KafkaException:
        return False
    finally:
        member.close()


def identities(messages: list[Message]) -> list[tuple[bytes, ...]]:
    """Return which alerts some records are."""
    return [identity(headers_of(one)) for one in messages]


def identity(headers: Mapping[str, bytes]) -> tuple[bytes, ...]:
    return tuple(headers[name] for name in ("topic", "partition", "offset"))
