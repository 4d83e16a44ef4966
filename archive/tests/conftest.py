"""Simulated alerts at places of one's choice, in Kafka and as packets."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from pyarrow.fs import S3FileSystem

from nightwire.archive import Archive
from nightwire.archive.storage import Packet, Store
from nightwire.archive.writing import SurveyWriter
from nightwire.core.kafka import Writer, producer
from nightwire.core.runtime import free_port
from nightwire.schemas import SIM_ALERT_ID, Codec, UnknownSchemaError, sim_alert_schema
from nightwire.schemas.wire import frame
from tests._alerts import empty
from tests._waiting import until

URL = "s3://night-archive/here"
NOON = 1_763_726_400_000
"""2025-11-21 12:00 UTC, when a night begins. [ms]"""


def alert(number: int, **source: Any) -> dict[str, Any]:
    """Return the alert of a number: three of each object, a hundredth of a degree apart."""
    made = empty(sim_alert_schema())
    made["diaSourceId"] = made["diaSource"]["diaSourceId"] = number
    made["diaSource"] |= {"diaObjectId": 10**6 + number // 3, "midpointMjdTai": 61000.6 + number * 1e-4}
    made["diaSource"] |= {"ra": (10.0 + 0.01 * number) % 360, "dec": -20.25, "visit": 7, "band": "r"}
    made["diaSource"] |= {"psfFlux": 3631.0, "psfFluxErr": 363.1} | source
    return made | {"cutoutScience": number.to_bytes(8, "big") * 50}


CODEC = Codec(sim_alert_schema())


def message(number: int, **source: Any) -> bytes:
    """Return the message of the simulated alert of a number."""
    return frame(SIM_ALERT_ID, CODEC.encode(alert(number, **source)))


def packet(offset: int, value: bytes | None = None, partition: int = 0) -> Packet:
    """Return a packet that holds *value*, else the alert of its offset."""
    at = "alerts.sim", partition, offset
    return Packet(*at, NOON + offset, b"k%d" % offset, [("survey", b"sim")], value or message(offset + 1))


class Known:
    """A registry that knows the simulated schema, and those it is given."""

    def __init__(self, **more: Codec) -> None:
        self._codecs = {SIM_ALERT_ID: CODEC} | {int(name[1:]): codec for name, codec in more.items()}

    def codec(self, schema_id: int) -> Codec:
        """Return the codec of a schema id."""
        if schema_id not in self._codecs:
            raise UnknownSchemaError(f"nobody knows {schema_id}")
        return self._codecs[schema_id]


def writer(folder: Path, registry: Any = None) -> SurveyWriter:
    """Return what writes simulated alerts into an archive."""
    return SurveyWriter(Store(folder), "sim", registry or Known())


def put(tables: SurveyWriter, *packets: Packet) -> Any:
    """Archive *packets* behind those that are there."""
    sources = {(one.topic, one.partition) for one in packets}
    return tables.write(packets, {one: tables.position(one[1]) for one in sources})


@pytest.fixture(scope="module")
def archived(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    """Return an archive of 300 alerts of one night, in two steps, among them two that are none."""
    folder = tmp_path_factory.mktemp("archive")
    tables = writer(folder)
    put(tables, *(packet(n) for n in range(100)), packet(100, b"junk"))
    put(tables, *(packet(n) for n in range(101, 299)), packet(299, b"\0\0\0\0\1x"))
    return Archive(folder)


@pytest.fixture
def simulate() -> Callable[[str, int, int], None]:
    """Return a function that writes the alerts of numbers to ``alerts.sim``."""

    def write(bootstrap: str, first: int, end: int) -> None:
        out = Writer(producer(bootstrap))
        for number in range(first, end):
            out.write("alerts.sim", message(number), key=b"%d" % (number // 3))
        out.flush()

    return write


@contextmanager
def serving(folder: Path, bootstrap: str, registry: str, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run `nightwire archive serve` within the block; it is killed at the end."""
    command = [sys.executable, "-c", "from nightwire.archive.commands import archive; archive()", "serve"]
    command += ["--archive", str(folder), "--bootstrap", bootstrap, "--registry", registry]
    command += [] if "--schedule" in words else ["--schedule", "constant"]
    with (folder.parent / "log").open("ab") as out:
        child = subprocess.Popen(
            [*command, *words], stdout=out, stderr=out, env=os.environ | {"KAFKA_SESSION_TIMEOUT_MS": "6000"}
        )
    try:
        yield child
    finally:
        child.kill()
        child.wait(30)


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """Yield a store in an empty bucket."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    found = {"AWS_ENDPOINT_URL": address, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    for name, value in (found | {"AWS_REGION": "us-east-1"}).items():
        monkeypatch.setenv(name, value)
    words = [shutil.which("moto_server") or "", "-H", "127.0.0.1", "-p", str(port)]
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until(lambda: httpx.get(f"{address}/moto-api/"), "moto answers", 60)
        S3FileSystem(
            endpoint_override=f"127.0.0.1:{port}", scheme="http", allow_bucket_creation=True
        ).create_dir("night-archive")
        yield Store(URL)
    finally:
        child.kill()
        child.wait(30)
