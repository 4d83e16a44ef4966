"""100,000 alerts, mutated (a proof: ten million): a value, or an error of decoding."""

import io
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import fastavro
import numpy as np
import pytest

from nightwire.schemas import AlertDecoder, Codec, DecodeError, UnknownSchemaError, wire
from tests._mutated import COUNTS, ROOM, most_memory, mutated

POINT = {
    "type": "record",
    "name": "point",
    "fields": [{"name": name, "type": ["null", "float"]} for name in ("mag1", "mag2", "mag3", "mag4")],
}
SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "alert",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "id2", "type": ["null", "string"]},
        {"name": "source", "type": POINT},
        {"name": "earlier", "type": ["null", {"type": "array", "items": "point"}]},
        {"name": "stamp", "type": ["null", "bytes"]},
        {"name": "kind", "type": {"type": "enum", "name": "kind", "symbols": ["a", "b", "c"]}},
        {"name": "counts", "type": {"type": "map", "values": "int"}},
    ],
}
FIELDS = ["id", "id2", "source", "source.mag1", "earlier", "earlier.mag2", "stamp", "kind"]
AT_ONCE = 1000


def alert(number: int) -> dict[str, Any]:
    """Return an alert with something of everything."""
    point = {"mag1": 1.5, "mag2": None, "mag3": 2.5, "mag4": 0.0}
    return {
        "id": number, "id2": "x" * (number % 9), "source": point, "earlier": [point] * (number % 4),
        "stamp": bytes(number % 50), "kind": "abc"[number % 3], "counts": {"a": number},
    }  # fmt: skip


def container(number: int) -> bytes:
    """Return an alert that brings its schema along."""
    file = io.BytesIO()
    fastavro.writer(file, SCHEMA, [alert(number)])
    return file.getvalue()


def cases(random: np.random.Generator, engine: str, count: int) -> Iterator[list[bytes]]:
    """Yield mutated alerts, some at a time: in wire format, and 3 % as containers."""
    codec = Codec(SCHEMA, engine=engine)
    framed = [wire.frame(5, codec.encode(alert(number))) for number in range(100)]
    whole = [container(number) for number in range(20)]
    for _ in range(count // AT_ONCE):
        yield [mutated(random, framed[number % 100]) for number in range(AT_ONCE * 97 // 100)]
        yield [mutated(random, whole[number % 20]) for number in range(AT_ONCE * 3 // 100)]


@pytest.mark.slow
@pytest.mark.parametrize("count", COUNTS)
def test_a_mutated_alert_gives_a_value_or_an_error_of_decoding(engine: str, count: int) -> None:
    random, codec = np.random.default_rng(20261123), Codec(SCHEMA, engine=engine)
    decoder = AlertDecoder(SimpleNamespace(codec=lambda number: known(codec, number)))
    before = most_memory()
    for values in cases(random, engine, count):
        columns = decoder.columns(values, FIELDS, missing_ok=True)
        assert {type(error) for error in columns.faults.values()} <= {DecodeError, UnknownSchemaError}
        assert len(columns.rows) + len(columns.faults) == len(values)
        for value in values[:10]:
            try:
                decoder.decode(value)
            except (DecodeError, UnknownSchemaError):
                continue
    assert most_memory() - before < ROOM


def known(codec: Codec, number: int) -> Codec:
    """Return the codec of schema 5, as a registry does."""
    if number != 5:
        raise UnknownSchemaError(f"no schema {number}")
    return codec
