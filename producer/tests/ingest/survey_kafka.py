"""A survey's own Kafka, played: small alerts of two surveys, and `nightwire ingest` beside it."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import fastavro
from confluent_kafka import Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from nightwire.core.accounting import Account, read_accounts
from nightwire.core.kafka import read_to_end
from nightwire.core.stack import die_with_parent
from nightwire.producer.ingest.positions import STAGE
from nightwire.schemas import Codec
from nightwire.schemas.records import VISIT
from nightwire.schemas.wire import frame
from tests._secure_broker import environment

Record = tuple[bytes, int]
"""A value, and the partition that it goes to."""

ID = 9900
"""Of the small schema, as Rubin numbers them: version 99.0."""


def lsst_schema(minor: int = 0) -> dict[str, Any]:
    """Return a small schema for the description of lsst; each version has one field more."""
    more = [{"name": f"news{n}", "type": "int", "default": n} for n in range(minor)]
    source = {"type": "record", "name": "diaSource", "fields": [_long("diaSourceId"), _long("visit")]}
    source["fields"] = [*source["fields"], _long("diaObjectId"), *more]
    fields = [_long("diaSourceId"), {"name": "diaSource", "type": source}, {"name": "pad", "type": "bytes"}]
    return {"type": "record", "name": "alert", "namespace": f"lsst.v99_{minor}", "fields": fields}


ZTF_SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "alert",
    "namespace": "ztf.small",
    "fields": [
        {"name": "objectId", "type": "string"},
        {"name": "candid", "type": "long"},
        {
            "name": "candidate",
            "type": {"type": "record", "name": "candidate", "fields": [{"name": "pid", "type": "long"}]},
        },
    ],
}


def _long(name: str) -> dict[str, Any]:
    return {"name": name, "type": "long"}


def body(number: int, visit: int, *, minor: int = 0, pad: bytes = b"") -> bytes:
    """Return the Avro body of alert *number*, of object ``number % 50``."""
    source = {"diaSourceId": number, "visit": visit, "diaObjectId": 1 + number % 50}
    news = {f"news{n}": n for n in range(minor)}
    return _codec(minor).encode({"diaSourceId": number, "diaSource": source | news, "pad": pad})


@cache
def _codec(minor: int) -> Codec:
    return Codec(lsst_schema(minor))


def wire(number: int, visit: int, *, minor: int = 0, pad: bytes = b"") -> bytes:
    """Return alert *number* in Confluent's wire format."""
    return frame(ID + minor, body(number, visit, minor=minor, pad=pad))


def container(numbers: Iterable[int], visit: int) -> bytes:
    """Return ZTF-like alerts in an Avro container."""
    stream = io.BytesIO()
    alerts = [
        {"objectId": f"ZTF{n % 5}", "candid": n, "candidate": {"pid": visit * 10_000 + 15}} for n in numbers
    ]
    fastavro.writer(stream, ZTF_SCHEMA, alerts)
    return stream.getvalue()


@dataclass
class SurveyKafka:
    """The survey's cluster.

    Attributes:
        address: Where the survey itself writes.
        settings: librdkafka's properties for that.
    """

    address: str
    settings: Mapping[str, str] = field(default_factory=dict)

    def make(self, topic: str, partitions: int = 2) -> None:
        """Make a topic."""
        client = AdminClient({"bootstrap.servers": self.address} | dict(self.settings))
        for done in client.create_topics([NewTopic(topic, partitions, 1)]).values():
            done.result(30)

    def send(self, topic: str, records: Iterable[Record], headers: Sequence[tuple[str, bytes]] = ()) -> None:
        """Write *records*, and wait until they are there."""
        producer = Producer({"bootstrap.servers": self.address, "linger.ms": 5} | dict(self.settings))
        for value, partition in records:
            producer.produce(topic, value, partition=partition, headers=list(headers))
        assert producer.flush(60) == 0


@dataclass
class Running:
    """A `nightwire ingest` that runs."""

    process: subprocess.Popen[bytes]
    log: Path

    def said(self) -> str:
        """Return what it wrote to its log so far."""
        return self.log.read_text()

    def kill(self) -> None:
        """Kill it as a power cut would."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """Ask it to stop; return its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


@dataclass
class Ingest:
    """How `nightwire ingest` is called in a test.

    Attributes:
        survey: Name of the survey.
        name: What the source is called.
        source: Its address.
        kafka: Ours.
        registry: Ours.
        folder: For the cache of schemas, and logs.
        client: librdkafka's properties for the source.
        words: Other options.
    """

    survey: str
    name: str
    source: str
    kafka: str
    registry: str
    folder: Path
    client: Mapping[str, str] = field(default_factory=dict)
    words: Sequence[str] = ()

    def to_the_end(self, *words: str) -> tuple[int, dict[str, Any], str]:
        """Mirror what is there; return the exit status, the counts, and the log."""
        command = [*self._command(), "--until-end", "--json", *words]
        done = subprocess.run(
            command, capture_output=True, text=True, env=self._env(), timeout=120, check=False
        )
        return done.returncode, json.loads(done.stdout or "{}"), done.stderr

    @contextmanager
    def running(self, *words: str) -> Iterator[Running]:
        """Run it until the block is left."""
        log = self.folder / f"ingest-{time.monotonic_ns()}.log"
        with log.open("wb") as out:
            command = [*self._command(), "--json", *words]
            child = subprocess.Popen(
                command,
                stdout=out,
                stderr=out,
                env=self._env(),
                preexec_fn=die_with_parent,  # noqa: PLW1509
            )
        one = Running(child, log)
        try:
            yield one
        finally:
            one.kill()

    def mirrored(self) -> list[Message]:
        """Return what lies in ``alerts.<survey>`` from this source, partition by partition."""
        from_here = ("source-cluster", self.name.encode())
        found = read_to_end(self.kafka, [f"alerts.{self.survey}"])
        return [message for message in found if from_here in (message.headers() or [])]

    def accounts(self) -> list[Account]:
        """Return the accounts of this source."""
        prefix = f"{self.survey}/{self.name}/"
        return [
            one for one in read_accounts(self.kafka) if one.stage == STAGE and one.source.startswith(prefix)
        ]

    def visits(self) -> dict[int, dict[str, Any]]:
        """Return the records of the survey's visits, by number."""
        found = [VISIT.decode(message.value() or b"") for message in read_to_end(self.kafka, ["visits"])]
        return {record["visit"]: record for record in found if record["survey"] == self.survey}

    def dead_letters(self) -> list[Message]:
        """Return the dead letters of this source."""
        prefix = f"{self.survey}/{self.name}/".encode()
        found = read_to_end(self.kafka, ["dead-letters"])
        return [message for message in found if headers_of(message)["source"].startswith(prefix)]

    def _command(self) -> list[str]:
        program = [sys.executable, "-m", "nightwire.core.cli", "ingest", "--survey", self.survey]
        return [*program, "--from", self.source, "--name", self.name, *self.words]

    def _env(self) -> dict[str, str]:
        ours = {"KAFKA_BOOTSTRAP_SERVERS": self.kafka, "NIGHTWIRE_SCHEMA_REGISTRY": self.registry}
        theirs = environment(self.client, "NIGHTWIRE_SOURCE_KAFKA_")
        return {**os.environ, **ours, **theirs, "XDG_CACHE_HOME": str(self.folder / "cache")}


def headers_of(message: Message) -> dict[str, bytes]:
    """Return a record's headers."""
    pairs: Any = message.headers() or ()
    return dict(pairs)


def place(message: Message) -> tuple[str, int, int]:
    """Return where a mirrored record lay at the source."""
    said = headers_of(message)
    return (
        said["source-topic"].decode(),
        int(said["source-partition"]),
        int(said["source-offset"]),
    )
