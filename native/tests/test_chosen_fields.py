"""Chosen fields: the full decode, projected; views into the body; the rest is left alone."""

import threading
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nightwire.schemas import Codec, DecodeError
from schemas.tests.avro.random_schemas import schemas, values

pytestmark = pytest.mark.native

ALERT = {
    "type": "record",
    "name": "alert",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "stamp", "type": ["null", "bytes"]},
        {"name": "rest", "type": {"type": "array", "items": "int"}},
    ],
}
alert = Codec(ALERT, engine="native")
BODY = alert.encode({"id": 7, "stamp": b"FITS", "rest": [1, 2]})


@pytest.mark.slow
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_chosen_fields_are_those_of_the_full_decode(data: st.DataObject) -> None:
    drawn = data.draw(schemas())
    one = Codec(drawn, engine="native")
    body = one.encode(data.draw(values(drawn)))
    everything = one.decode(body)
    chosen = data.draw(st.lists(st.sampled_from([field["name"] for field in drawn["fields"]]), unique=True))
    pruned = {name: value for name, value in everything.items() if name in chosen}
    assert repr(without_views(one.decode(body, chosen))) == repr(pruned)


def without_views(value: Any) -> Any:
    """Return the same with bytes for memoryviews."""
    if isinstance(value, dict):
        return {name: without_views(one) for name, one in value.items()}
    if isinstance(value, list):
        return [without_views(one) for one in value]
    return value.tobytes() if isinstance(value, memoryview) else value


@pytest.mark.parametrize("body", [BODY, memoryview(b"??" + BODY + b"?")[2:-1], bytearray(BODY)], ids=type)
def test_stamps_are_views_into_the_body(body: Any) -> None:
    stamp = alert.decode(body, ["stamp"])["stamp"]
    assert isinstance(stamp, memoryview)
    assert stamp == b"FITS"
    assert alert.decode(body)["stamp"] == b"FITS"
    assert type(alert.decode(body)["stamp"]) is bytes


def test_the_view_of_bytes_copies_nothing() -> None:
    assert alert.decode(BODY, ["stamp"])["stamp"].obj is BODY
    assert alert.decode(memoryview(BODY), ["stamp"])["stamp"].obj is BODY


def test_what_lies_behind_the_last_chosen_field_is_not_looked_at() -> None:
    assert alert.decode(BODY[:7], ["id"]) == {"id": 7}
    with pytest.raises(DecodeError):
        alert.decode(BODY[:7])


@pytest.mark.parametrize("body", ["text", 3, None, [1]], ids=type)
def test_what_is_no_buffer_is_a_type_error(body: Any) -> None:
    with pytest.raises(TypeError):
        alert.decode(body)


@pytest.mark.slow
def test_other_threads_run_while_a_batch_is_decoded() -> None:
    """A long batch in one thread; another must get the interpreter before it ends."""
    many = [alert.encode({"id": 7, "stamp": None, "rest": list(range(50_000))})] * 400
    ended, ticks = threading.Event(), []

    def count() -> None:
        while not ended.is_set():
            ticks.append(None)

    counter = threading.Thread(target=count)
    counter.start()
    before = len(ticks)
    assert alert.columns(many, ["rest"]).num_rows == 400
    during = len(ticks) - before
    ended.set()
    counter.join()
    assert during > 1000
