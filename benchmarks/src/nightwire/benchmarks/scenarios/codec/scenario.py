"""The scenario `codec`: its figures, and which engines it compares."""

import copy
import io
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa

from nightwire.benchmarks import Context, Experiment, Figure, Needs, Outcome, Scenario, Size
from nightwire.benchmarks.environment.alert_pool import make_pool
from nightwire.benchmarks.environment.machine import data_folder
from nightwire.benchmarks.model.sample import Figures, Kind, Sample
from nightwire.benchmarks.workers.alerts.reader import TWENTY_COLUMNS
from nightwire.schemas import Codec, engines, sim_alert_schema
from nightwire.schemas.wire import read_container

Schema = dict[str, Any]

REAL = "alerts/lsst/rubin_real_v11_0.avro"
SIMULATED = 32


@dataclass(frozen=True)
class Alerts:
    """Alerts of one schema.

    Attributes:
        what: Where they are from, for people.
        schema: Theirs.
        bodies: Avro bodies.
        values: The same, decoded.
    """

    what: str
    schema: Schema
    bodies: Sequence[bytes]
    values: Sequence[Mapping[str, Any]]


def find_alerts(data: Path | None) -> Alerts:
    """Return the real Rubin alerts under *data*, else simulated ones."""
    path = None if data is None else data / REAL
    if path is not None and path.exists():
        records = list(read_container(path.read_bytes()))
        what = f"{len(records)} real Rubin alerts"
        return Alerts(what, records[0].schema, [one.body for one in records], [one.record for one in records])
    schema, pool = sim_alert_schema(), make_pool(SIMULATED)
    codec = Codec(schema)
    return Alerts(f"{SIMULATED} simulated alerts", schema, [codec.encode(alert) for alert in pool], pool)


def other_version(schema: Mapping[str, Any]) -> Schema:
    """Return *schema* as a client might want it: renamed, widened, new and required fields."""
    wanted: Schema = copy.deepcopy(dict(schema))
    (source,) = (field["type"] for field in wanted["fields"] if field["name"] == "diaSource")
    for field in source["fields"]:
        if field["name"] == "psfFlux":
            field |= {"name": "flux", "aliases": ["psfFlux"]}
        elif field["type"] == ["null", "float"]:
            field |= {"type": "double"}
            field.pop("default", None)
    source["fields"].append({"name": "note", "type": ["null", "string"], "default": None})
    return wanted


BATCH = 256
"""Messages that become one batch of columns, as a consumer takes them."""


def microseconds(work: Callable[[], object], count: int) -> float:
    """Return how long *work* takes for each of *count* alerts. [µs]"""
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) / count * 1e6


class CodecEngine(Experiment):
    """Encode, decode and make columns with one of our engines; the baseline does so with fastavro.

    Args:
        engine: ``native`` or ``python``.
        alerts: What to work on.
        count: Alerts in each run, taken in turn.
    """

    def __init__(self, engine: str, alerts: Alerts, count: int) -> None:
        self.name, self._count = engine, count
        self._codec = Codec(alerts.schema, engine=engine)
        self._fastavro = FastavroCodec(alerts.schema)
        self._values = list(islice(cycle(alerts.values), count))
        self._bodies = list(islice(cycle(alerts.bodies), count))

    def prepare(self) -> None:
        """Warm both up, and see that they agree on every alert.

        Raises:
            AssertionError: They do not.
        """
        for value, body in zip(self._values, self._bodies, strict=True):
            if self._codec.encode(value) != body or self._codec.decode(body) != self._fastavro.decode(body):
                raise AssertionError(f"{self.name} and fastavro do not agree on an alert")
        for kind in Kind:
            self.run_once(kind)

    def run_once(self, kind: Kind) -> Figures:
        """Encode, decode, and make columns of, all alerts."""
        one: Codec | FastavroCodec = self._codec if kind is Kind.SUBJECT else self._fastavro
        works: dict[str, Callable[[], object]] = {
            "encode": lambda: [one.encode(value) for value in self._values],
            "decode": lambda: [one.decode(body) for body in self._bodies],
            "columns": lambda: [one.columns(batch, TWENTY_COLUMNS) for batch in batches(self._bodies)],
        }
        return {f"{self.name}_{what}_us": microseconds(work, self._count) for what, work in works.items()}


class OtherVersion(Experiment):
    """Decode as a client's own version of the schema; the baseline decodes as it was written."""

    def __init__(self, engine: str, alerts: Alerts, count: int) -> None:
        self.name, self._engine, self._count = f"{engine}_morph", engine, count
        self._bodies = list(islice(cycle(alerts.bodies), count))
        self._codecs = {
            Kind.SUBJECT: Codec(alerts.schema, reader=other_version(alerts.schema), engine=engine),
            Kind.BASELINE: Codec(alerts.schema, engine=engine),
        }

    def prepare(self) -> None:
        """Warm both up."""
        for kind in Kind:
            self.run_once(kind)

    def run_once(self, kind: Kind) -> Figures:
        """Decode all alerts."""
        codec = self._codecs[kind]
        taken = microseconds(lambda: [codec.decode(body) for body in self._bodies], self._count)
        return {f"{self.name}_decode_us": taken}


class FastavroCodec:
    """fastavro, used as its documentation says."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._parsed = fastavro.parse_schema(dict(schema), named_schemas={})

    def encode(self, alert: Mapping[str, Any]) -> bytes:
        """Return the Avro body of *alert*."""
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, self._parsed, alert)
        return stream.getvalue()

    def decode(self, body: bytes) -> Any:
        """Return the alert in *body*."""
        return fastavro.schemaless_reader(io.BytesIO(body), self._parsed, None)

    def columns(self, bodies: Sequence[bytes], fields: Sequence[str]) -> Any:
        """Return columns of *fields*, made of whole alerts: fastavro decodes nothing less."""
        alerts = [self.decode(body) for body in bodies]
        paths = [field.split(".") for field in fields]
        columns = zip(fields, paths, strict=True)
        return pa.table({field: [value(alert, path) for alert in alerts] for field, path in columns})


def value(alert: Any, path: Sequence[str]) -> Any:
    """Return what lies at *path*."""
    for step in path:
        alert = alert[step]
    return alert


def batches(bodies: Sequence[bytes]) -> list[Sequence[bytes]]:
    """Cut *bodies* as a consumer takes them."""
    return [bodies[start : start + BATCH] for start in range(0, len(bodies), BATCH)]


FASTAVRO = "fastavro, in the same process"
TITLES = {
    "encode": "dictionary to bytes",
    "decode": "bytes to dictionary",
    "columns": "bytes to twenty Arrow columns",
}


def figures() -> Iterator[Figure]:
    """Yield what is reported: each engine beside fastavro, then morphing beside plain decoding."""
    for engine in ("native", "python"):
        for what, title in TITLES.items():
            yield Figure(
                f"{engine}_{what}_us",
                "µs",
                f"{engine}: {title}, an alert",
                baseline=FASTAVRO,
                headline=True,
            )
    for engine in ("native", "python"):
        yield Figure(
            f"{engine}_morph_decode_us",
            "µs",
            f"{engine}: bytes to a dictionary of another version, an alert",
            baseline="the same engine, decoding as it was written",
            headline=True,
        )


class CodecScenario(Scenario):
    """Encoding and decoding alone, in one process."""

    name = "codec"
    title = "The codec, beside fastavro"
    measures = (
        "Alerts are encoded, decoded, and made into twenty columns, by each engine of ours and by fastavro "
        "in the same process, one core. Ours refuses values that do not fit, which fastavro writes. "
        "Before the clock starts, bytes and values are compared for every alert."
    )
    figures: Sequence[Figure] = tuple(figures())
    standard: Mapping[str, Size] = {
        "quick": Size(alerts=256, pairs=5, rate=1.0, profile="quick"),
        "full": Size(alerts=2_048, pairs=9, rate=1.0, profile="full"),
    }

    def needs(self, size: Size) -> Needs:
        """Return what a run of *size* takes."""
        return Needs(disk=10**6, memory=2 * 10**9, seconds=10 + size.alerts * size.pairs * 0.015)

    def experiments(self, context: Context) -> Sequence[Experiment]:
        """Return each engine beside fastavro, and morphing beside plain decoding."""
        context.say("gathering alerts")
        self._alerts, self._count = find_alerts(data_folder()), context.size.alerts
        there = engines()
        return [
            *(CodecEngine(name, self._alerts, self._count) for name in there),
            *(OtherVersion(name, self._alerts, self._count) for name in there),
        ]

    def outcome(self, samples: Sequence[Sample]) -> Outcome:
        """Say what the alerts were."""
        sizes = sorted(len(body) for body in self._alerts.bodies)
        notes = [
            f"{self._alerts.what}, {sizes[0]:,} to {sizes[-1]:,} bytes (median {sizes[len(sizes) // 2]:,}), "
            f"taken in turn, {self._count:,} a run."
        ]
        if "native" not in engines():
            notes.append("The native codec is not built here: `make native` builds it.")
        return Outcome(notes=notes)
