"""The work that is timed: ours by one engine, and the same by fastavro."""

import io
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle, islice
from typing import Any

import fastavro
import pyarrow as pa

from nightwire.benchmarks.model.sample import Figures, Kind
from nightwire.benchmarks.model.scenario import Experiment
from nightwire.benchmarks.scenarios.codec.alerts import Alerts, other_version
from nightwire.benchmarks.workers.alerts.reader import TWENTY_COLUMNS
from nightwire.schemas import Codec

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
