"""Fuzz for a while: ``python -m native.tests.fuzz SECONDS [ALERTS.avro]``.

Bodies of random schemas, or the alerts of a file, are changed, cut off and added to; every reader
must give a value or a DecodeError, and the process must not grow.
"""

import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from native.tests.test_malformed import mutated, reads
from nightwire.schemas import Codec
from schemas.tests.avro.random_schemas import has_column, schemas, values

Case = tuple[Codec, list[str], bytes]


def from_file(path: Path) -> list[Case]:
    """Return the alerts of an Avro file."""
    with path.open("rb") as stream:
        reader = fastavro.reader(stream)
        codec = Codec(reader.writer_schema, engine="native")
        return [(codec, _columns(codec), codec.encode(alert)) for alert in reader]


def at_random(count: int) -> list[Case]:
    """Return bodies of so many random schemas."""
    cases: list[Case] = []

    @settings(
        max_examples=count, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate]
    )
    @given(st.data())
    def draw(data: st.DataObject) -> None:
        schema = data.draw(schemas())
        codec = Codec(schema, engine="native")
        cases.append((codec, _columns(codec), codec.encode(data.draw(values(schema)))))

    draw()
    return cases


def _columns(codec: Codec) -> list[str]:
    return [field["name"] for field in codec.schema["fields"] if has_column(field["type"])]


def fuzz(cases: list[Case], seconds: float) -> Iterator[int]:
    """Read changed bodies for so many *seconds*, yielding how many so far."""
    random = np.random.default_rng()
    end, done = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        for codec, fields, body in cases:
            reads(codec, mutated(random, body), fields)
        done += len(cases)
        yield done


def main(seconds: str, *files: str) -> None:
    """Fuzz, and say how much."""
    cases: list[Any] = [case for file in files for case in from_file(Path(file))] or at_random(500)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    *_, done = fuzz(cases, float(seconds))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    sys.stdout.write(f"{done} bodies, memory grew by {grown / 1024:.0f} MB\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
