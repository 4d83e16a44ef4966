"""PatchedAlerts alerts are what the codec would have written."""

import struct
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nightwire.producer import VisitLog
from nightwire.producer.simulation.pool import PatchedAlerts, make_pool, pool_member, value_paths
from nightwire.producer.simulation.template import Template, replaced, spelled
from nightwire.producer.writing.visit_writer import EncodedAlert
from nightwire.schemas import Codec, survey

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
Alerts = list[dict[str, Any]]

INNER = {"type": "record", "name": "inner", "fields": [{"name": "x", "type": ["null", "double"]}]}
SMALL = {
    "type": "record",
    "name": "small",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": "string"},
        {"name": "past", "type": {"type": "array", "items": INNER}},
        {"name": "x", "type": "double"},
        {"name": "twin", "type": "long"},
    ],
}
PATHS = {"id": ("id",), "x": ("x", "past.x"), "twin": ("twin",)}
ALERT = {"id": 300, "name": "ab", "past": [{"x": 1.5}, {"x": None}, {"x": 1.5}], "x": 1.5, "twin": 300}


def test_the_bytes_are_these() -> None:
    template = Template(Codec(SMALL).encode, ALERT, PATHS)
    double = struct.pack("<d", -2.5)
    expected = (
        b"\xa8\x4d"  # 4,948 as zigzag: 9,896 = 77 * 128 + 40
        b"\x04ab"
        b"\x06" + b"\x02" + double + b"\x00" + b"\x02" + double + b"\x00" + double + b"\xd8\x04"
    )
    assert template.filled({"id": 4948, "x": -2.5}) == expected


@pytest.mark.parametrize(
    ("value", "spelling"),
    [
        (0, b"\x00"),
        (-1, b"\x01"),
        (64, b"\x80\x01"),
        (2**63 - 1, b"\xfe" + b"\xff" * 8 + b"\x01"),
        (1.0, b"\0" * 6 + b"\xf0?"),
    ],
)
def test_values_are_spelled_as_avro_does(value: float, spelling: bytes) -> None:
    assert spelled(value) == spelling


def test_a_value_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="id 5 takes 1 bytes, not 2"):
        Template(Codec(SMALL).encode, ALERT, PATHS).filled({"id": 5})


@given(
    st.integers(64, 8191) | st.integers(-8192, -65),
    st.floats(allow_nan=False),
    st.lists(st.none() | st.floats(allow_nan=False), max_size=4),
    st.floats(allow_nan=False),
)
def test_filling_a_template_is_encoding_the_changed_alert(
    number: int, x: float, past: list[float | None], new: float
) -> None:
    codec = Codec(SMALL)
    alert = ALERT | {"x": x, "past": [{"x": None if one is None else x} for one in past]}
    values = {"id": number, "x": new, "twin": -number - 1}
    assert Template(codec.encode, alert, PATHS).filled(values) == codec.encode(replaced(alert, values, PATHS))


@pytest.mark.slow
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.integers(2025_0101_00000, 2199_0000_00000), st.floats(0.0, 360.0), st.floats(-90.0, 90.0))
def test_a_copy_of_a_simulated_alert_is_what_the_codec_writes(
    visit: Alerts, codec: Codec, number: int, ra: float, dec: float
) -> None:
    values = {
        "id": number * 1_000_000 + 77,
        "visit": number,
        "object": number * 1_000_000 + 78,
        "moving": 21_160_000_000_000_001,
        "time": 61_000.5 + ra,
        "processed": 61_000.6 + ra,
        "ra": ra,
        "dec": dec,
    }
    for alert in visit[::80]:
        of = value_paths(alert)
        template = Template(codec.encode, alert, of)
        known = {name: value for name, value in values.items() if name in template.names}
        assert template.filled(values) == codec.encode(replaced(alert, known, of))


@pytest.fixture
def encode(codec: Codec) -> Callable[[dict[str, Any]], EncodedAlert]:
    """Return what gives key and body of an alert."""
    return lambda alert: EncodedAlert(survey("sim").key(alert), codec.encode(alert))


def test_a_visit_larger_than_its_pool_repeats_no_id_object_or_place(
    encode: Callable[[dict[str, Any]], EncodedAlert], codec: Codec
) -> None:
    log = VisitLog(7, NOON)
    field = PatchedAlerts(list(make_pool(7, 40, log, NOON, encode)), log, 130)
    field.open(NOON, 2026030143201)
    sent = list(field.alerts())
    alerts = [codec.decode(one.value) for one in sent]
    sources = [alert["diaSource"] for alert in alerts]
    described = survey("sim")
    assert [described.key(alert) for alert in alerts] == [one.key for one in sent]
    assert len({one.key for one in sent}) == 130
    assert len({source["diaSourceId"] for source in sources}) == 130
    assert len({(source["ra"], source["dec"]) for source in sources}) == 130
    assert {source["visit"] for source in sources} == {2026030143201}
    for alert, source in zip(alerts, sources, strict=True):
        assert alert["diaSourceId"] == source["diaSourceId"]
        if alert["diaObject"]:
            assert alert["diaObject"]["diaObjectId"] == source["diaObjectId"]
            assert {row["diaObjectId"] for row in alert["prvDiaSources"] or ()} <= {source["diaObjectId"]}


def test_the_same_seed_gives_the_same_copies(encode: Callable[[dict[str, Any]], EncodedAlert]) -> None:
    def visit(seed: int) -> list[EncodedAlert]:
        log = VisitLog(seed, NOON)
        field = PatchedAlerts(list(make_pool(seed, 5, log, NOON, encode)), log, 12)
        field.open(NOON, 2026030143201)
        return list(field.alerts())

    assert visit(3) == visit(3)
    assert not {one.value for one in visit(3)} & {one.value for one in visit(4)}


def test_a_pool_is_made_one_by_one(encode: Callable[[dict[str, Any]], EncodedAlert], visit: Alerts) -> None:
    assert len(list(islice(make_pool(7, 1000, VisitLog(7, NOON), NOON, encode), 3))) == 3
    assert pool_member(visit[0], encode).ra == visit[0]["diaSource"]["ra"]
