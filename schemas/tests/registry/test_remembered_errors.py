"""Errors that are remembered keep nothing of the messages that met them."""

import io
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import httpx
import pytest

from nightwire.schemas import AlertDecoder, Codec, RegistryAwayError, SchemaError, SchemaRegistry, wire

TEXT = {"type": "record", "name": "r", "fields": [{"name": "x", "type": "string"}]}
NUMBER = {"type": "record", "name": "r", "fields": [{"name": "x", "type": "long"}]}


class One:
    """A registry of one schema."""

    def codec(self, schema_id: int) -> Codec:
        return Codec(TEXT)


def contained() -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, TEXT, [{"x": "a"}])
    return out.getvalue()


def raised(call: Callable[[], Any]) -> Exception:
    with pytest.raises(SchemaError) as caught:
        call()
    return caught.value


def entries(error: Exception) -> int:
    """Return how many entries an error's traceback has."""
    return len(list(traceback.walk_tb(error.__traceback__)))


@pytest.mark.parametrize("value", [wire.frame(7, b"\x02a"), contained()], ids=["framed", "contained"])
def test_a_schema_that_cannot_be_read_is_a_new_error_for_each_message(value: bytes) -> None:
    decoder = AlertDecoder(One(), reader=NUMBER)
    errors = [raised(lambda: decoder.decode(value)) for _ in range(3)]
    assert len({id(error) for error in errors}) == 3
    assert [str(error) for error in errors] == ["r cannot be read as r: x: a string is no long"] * 3
    assert len({entries(error) for error in errors}) == 1


def test_an_id_that_is_missing_is_a_new_error_for_each_question(tmp_path: Path) -> None:
    asked = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        return httpx.Response(404, json={"message": "Schema not found"})

    with SchemaRegistry("http://r:1", cache_dir=tmp_path, transport=httpx.MockTransport(answer)) as registry:
        first, *later = [raised(lambda: registry.schema(7)) for _ in range(4)]
    assert len(asked) == 1
    assert len({id(error) for error in (first, *later)}) == 4
    assert {(type(error), str(error)) for error in later} == {(type(first), str(first))}
    assert len({entries(error) for error in later}) == 1


def test_a_registry_that_does_not_answer_is_remembered_as_one_that_may_answer_later() -> None:
    """Who reads waits for it; an id that nobody knows would be passed over."""
    with SchemaRegistry(None) as registry:
        errors = [raised(lambda: registry.schema(7)) for _ in range(3)]
    assert {type(error) for error in errors} == {RegistryAwayError}


def test_errors_of_columns_do_not_hold_the_messages() -> None:
    good, bad = wire.frame(7, b"\x02a"), wire.frame(7, b"\x02")
    columns = AlertDecoder(One()).columns([bad, good, b"\x01"], ["x"])
    assert sorted(columns.faults) == [0, 2]
    assert [error.__traceback__ for error in columns.faults.values()] == [None, None]
