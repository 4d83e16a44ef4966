"""Each engine against fastavro, on random schemas: bytes, values, evolution, malformed bodies."""

import contextlib
import io
import os
from typing import Any

import fastavro
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nightwire.schemas import Codec, DecodeError
from nightwire.schemas.avro.plans.schema import parse
from schemas.tests.avro.random_schemas import has_column, pairs, schemas, values

pytestmark = pytest.mark.slow

EXAMPLES = 1000 if os.environ.get("NIGHTWIRE_PROOFS") == "1" else 50
thoroughly = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))


def written(schema: Any, value: Any) -> bytes:
    """Return fastavro's bytes."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, parse(schema), value)
    return out.getvalue()


def read(body: bytes, schema: Any, reader: Any = None) -> Any:
    """Return fastavro's value."""
    return fastavro.schemaless_reader(io.BytesIO(body), parse(schema), reader and parse(reader))


@thoroughly
@given(st.data())
def test_bytes_and_values_are_fastavros(engine: str, data: st.DataObject) -> None:
    """Thrice, as an engine may learn how a schema's records look."""
    schema = data.draw(schemas())
    codec = Codec(schema, engine=engine)
    for value in data.draw(st.lists(values(schema), min_size=1, max_size=3)) * 3:
        body = written(schema, value)
        assert codec.encode(value) == body
        assert repr(codec.decode(body)) == repr(read(body, schema))  # NaN is not equal to itself


@thoroughly
@given(st.data())
def test_what_another_schema_wrote_is_read_as_fastavro_reads_it(engine: str, data: st.DataObject) -> None:
    writer, reader = data.draw(pairs())
    codec = Codec(writer, reader=reader, engine=engine)
    for value in data.draw(st.lists(values(writer), min_size=1, max_size=3)) * 2:
        body = codec.encode(value)
        try:
            expected = read(body, writer, reader)
        except ValueError:  # bytes that are read as text need not be UTF-8, nor a UUID
            with pytest.raises(DecodeError):
                codec.decode(body)
        else:
            assert same(codec.decode(body), expected)


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal, a NaN to itself, records in whatever order of fields."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return repr(one) == repr(other)


@thoroughly
@given(st.data())
def test_columns_are_the_values(engine: str, data: st.DataObject) -> None:
    schema = data.draw(schemas())
    names = [one["name"] for one in schema["fields"] if has_column(one["type"])]
    alerts = data.draw(st.lists(values(schema), max_size=3))
    codec = Codec(schema, engine=engine)
    other = Codec(schema, engine="python")
    bodies = [codec.encode(alert) for alert in alerts]
    with contextlib.suppress(DecodeError):  # a time or a number that Arrow cannot hold
        expected = other.columns(bodies, names)
        assert repr(codec.columns(bodies, names).to_pylist()) == repr(expected.to_pylist())


@thoroughly
@given(st.data())
def test_malformed_bodies_are_refused_alike(engine: str, data: st.DataObject) -> None:
    """Bytes are changed, cut off and added: the same value or a DecodeError from both engines."""
    schema = data.draw(schemas())
    codec, other = Codec(schema, engine=engine), Codec(schema, engine="python")
    body = bytearray(codec.encode(data.draw(values(schema))))
    for at, byte in data.draw(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 255)), max_size=3)):
        if body:
            body[at % len(body)] = byte
    cut = bytes(body[: data.draw(st.integers(0, len(body)))]) + data.draw(st.binary(max_size=3))
    assert verdict(codec, cut) == verdict(other, cut)


def verdict(codec: Codec, body: bytes) -> str:
    """Return what a codec makes of a body."""
    try:
        return repr(codec.decode(body))
    except DecodeError:
        return "refused"
