"""Versions of LSST's schema, read as one another; several in one batch."""

import importlib.util
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

from nightwire.schemas import (
    AlertDecoder,
    Codec,
    DecodeError,
    SchemaError,
    SchemaRegistry,
    UnknownSchemaError,
    survey,
    wire,
)
from nightwire.schemas.commands import schema as schema_verb
from nightwire.schemas.survey_model.description import description
from nightwire.schemas.survey_model.versions import Pair, as_markdown, load_version, pairs

PAGE = Path(__file__).parents[3] / "docs/user/lsst-versions.md"
CHANGES = description("lsst").changes

POINT = {
    "type": "record",
    "name": "point",
    "fields": [{"name": "old", "type": ["null", "float"]}, {"name": "n", "type": "int"}],
}
NEWER = {
    "type": "record",
    "name": "point",
    "fields": [
        {"name": "new", "type": "double", "aliases": ["old"]},
        {"name": "n", "type": "long"},
        {"name": "extra", "type": ["null", "string"], "default": None},
    ],
}


@pytest.fixture(scope="module")
def versions() -> dict[str, dict[str, Any]]:
    """Return the published schemas by version, from LSST's own package."""
    found = importlib.util.find_spec("lsst.alert.packet")
    assert found is not None
    assert found.origin is not None
    folder = Path(found.origin).parent / "schema"
    paths = sorted(
        (path.parent for path in folder.glob("*/*/*.alert.avsc")),
        key=lambda path: (int(path.parent.name), int(path.name)),
    )
    return {f"{path.parent.name}.{path.name}": load_version(path) for path in paths}


@pytest.fixture(scope="module")
def decided(versions: dict[str, dict[str, Any]]) -> list[Pair]:
    """Return what is said of each pair of them."""
    return pairs(versions, CHANGES)


class Registry:
    """Schemas by id, without a server."""

    def __init__(self, **schemas: dict[str, Any]) -> None:
        self._schemas = schemas

    def codec(self, schema_id: int) -> Codec:
        """Return the codec of a schema."""
        try:
            return Codec(self._schemas[f"v{schema_id}"])
        except KeyError as error:
            raise UnknownSchemaError(f"no schema {schema_id}") from error


def message(schema_id: int, schema: dict[str, Any], alert: dict[str, Any]) -> bytes:
    """Return an alert in wire format."""
    return wire.frame(schema_id, Codec(schema).encode(alert))


@pytest.mark.slow
@pytest.mark.interop
def test_every_pair_of_published_versions_is_decided(
    versions: dict[str, dict[str, Any]], decided: list[Pair]
) -> None:
    """The page says for each pair: read, or the field and the reason why not."""
    assert len(decided) == len(versions) ** 2 >= 14**2
    assert all(pair.mismatches or pair.conditions for pair in decided if pair.verdict != "yes")
    assert as_markdown("lsst", decided) == PAGE.read_text(encoding="utf-8"), "run `nightwire schema check`"


@pytest.mark.interop
def test_an_old_client_reads_what_a_newer_minor_version_writes(
    versions: dict[str, dict[str, Any]], decided: list[Pair]
) -> None:
    verdicts = {(one.writer, one.reader): one.verdict for one in decided}
    names = list(versions)
    for writer in names:
        for reader in names:
            if writer.split(".")[0] == reader.split(".")[0]:
                assert verdicts[writer, reader] == "yes"


@pytest.mark.interop
@pytest.mark.data
@pytest.mark.parametrize("version", ["7.0", "7.4", "8.0", "9.0", "10.0", "11.1"])
def test_real_alerts_are_read_as_other_versions(
    versions: dict[str, dict[str, Any]], data: Path, engine: str, version: str
) -> None:
    records = list(wire.read_container((data / "alerts/lsst/rubin_real_v11_0.avro").read_bytes()))
    reader = Codec(versions[version])
    codec = Codec(records[0].schema, reader=versions[version], changes=CHANGES, engine=engine)
    for one in records:
        alert = codec.decode(one.body)
        assert set(alert) == {field["name"] for field in versions[version]["fields"]}
        reader.encode(alert)  # it fits the schema that was asked for
        assert alert["diaSource"]["psfFlux"] == one.record["diaSource"]["psfFlux"]
        assert alert["diaSource"]["midpointMjdTai"] == one.record["diaSource"]["midpointMjdTai"]
        assert survey("lsst").alert_id(alert) == survey("lsst").alert_id(one.record)


@pytest.mark.interop
@pytest.mark.data
def test_times_in_tai_become_timestamps_in_utc_and_back(
    versions: dict[str, dict[str, Any]], data: Path
) -> None:
    one = next(wire.read_container((data / "alerts/lsst/rubin_real_v11_0.avro").read_bytes()))
    forth = Codec(one.schema, reader=versions["8.0"], changes=CHANGES)
    back = Codec(versions["8.0"], reader=versions["9.0"], changes=CHANGES)
    old = forth.decode(one.body)
    mjd = one.record["diaSource"]["timeProcessedMjdTai"]
    utc = old["diaSource"]["time_processed"].timestamp() / 86400 + 40587
    assert (mjd - utc) * 86400 == pytest.approx(37.0, abs=1e-4)
    assert back.decode(Codec(versions["8.0"]).encode(old))["diaSource"][
        "timeProcessedMjdTai"
    ] == pytest.approx(mjd, abs=1e-10)


@pytest.mark.interop
@pytest.mark.data
def test_a_captured_packet_of_v9_is_read_as_v11(versions: dict[str, dict[str, Any]], data: Path) -> None:
    """Its null counts are zero, as v11.0 writes them."""
    schema_id, body = wire.unframe((data / "alerts/lsst/wire/boom_v9_0_7912941781254298.cwf").read_bytes())
    assert schema_id == 900
    was = Codec(versions["9.0"]).decode(body)
    alert = Codec(versions["9.0"], reader=versions["11.1"], changes=CHANGES).decode(body)
    assert was["diaSource"]["trailNdata"] is None
    assert alert["diaSource"]["trailNdata"] == 0
    assert alert["diaObject"]["u_psfFluxNdata"] == 0
    assert alert["diaSource"]["psfFlux"] == was["diaSource"]["psfFlux"]


def test_a_new_version_in_mid_stream_stops_nobody() -> None:
    decoder = AlertDecoder(Registry(v1=POINT, v2=NEWER))
    first = decoder.decode(message(1, POINT, {"old": 1.5, "n": 1}))
    second = decoder.decode(message(2, NEWER, {"new": 2.5, "n": 2}))
    assert (first.alert["old"], second.alert["new"]) == (1.5, 2.5)
    old = AlertDecoder(Registry(v1=POINT, v2=NEWER), reader=NEWER)
    assert old.decode(message(1, POINT, {"old": 1.5, "n": 1})).alert == {"new": 1.5, "n": 1, "extra": None}
    assert old.decode(message(2, NEWER, {"new": 2.5, "n": 2})).alert["new"] == 2.5


def test_two_versions_in_one_batch_are_read_each_by_its_own_id() -> None:
    decoder = AlertDecoder(Registry(v1=POINT, v2=NEWER), reader=NEWER)
    values = [
        message(1, POINT, {"old": 1.5, "n": 1}),
        message(2, NEWER, {"new": 2.5, "n": 2, "extra": "x"}),
        message(1, POINT, {"old": None, "n": 3}),
    ]
    columns = decoder.columns(values, ["new", "extra", "n"])
    rows = columns.batch.to_pylist()
    assert [row["n"] for row in rows] == [1, 2, 3]
    assert [row["extra"] for row in rows] == [None, "x", None]
    assert math.isnan(rows[2]["new"])
    assert (list(columns.rows), dict(columns.faults)) == ([0, 1, 2], {})
    assert columns.batch.schema.types == [pa.float64(), pa.string(), pa.int64()]


def test_without_a_reader_types_that_differ_are_widened() -> None:
    columns = AlertDecoder(Registry(v1=POINT, v2=NEWER)).columns(
        [message(2, NEWER, {"new": 2.5, "n": 2**40}), message(1, POINT, {"old": 1.5, "n": 1})], ["n"]
    )
    assert columns.batch.to_pylist() == [{"n": 2**40}, {"n": 1}]
    assert columns.batch.schema.types == [pa.int64()]


def test_a_field_that_one_version_lacks_is_null_in_its_rows() -> None:
    decoder = AlertDecoder(Registry(v1=POINT, v2=NEWER))
    values = [message(1, POINT, {"old": 1.5, "n": 1}), message(2, NEWER, {"new": 2.5, "n": 2, "extra": "x"})]
    columns = decoder.columns(values, ["old", "extra", "n"])
    assert dict(columns.faults) == {}
    assert columns.batch.to_pylist() == [
        {"old": 1.5, "extra": None, "n": 1},
        {"old": None, "extra": "x", "n": 2},
    ]
    with pytest.raises(SchemaError, match="unknown field odd: no 'odd'; it has old, n"):
        decoder.columns(values, ["old", "odd"])
    odd = decoder.columns(values, ["old", "odd"], missing_ok=True).batch
    assert (odd.column("odd").to_pylist(), odd.schema.field("odd").type) == ([None, None], pa.null())
    assert decoder.columns(values, ["odd"], missing_ok=True).batch.num_rows == 2


def test_a_field_that_lacks_in_an_array_is_null_in_each_item() -> None:
    def versions(*names: str) -> dict[str, Any]:
        item = {"type": "record", "name": "item", "fields": [{"name": one, "type": "int"} for one in names]}
        past = {"type": ["null", {"type": "array", "items": item}], "name": "past"}
        return {"type": "record", "name": "alert", "fields": [past]}

    old, new = versions("a"), versions("a", "b")
    values = [
        message(1, old, {"past": [{"a": 1}, {"a": 2}]}),
        message(1, old, {"past": None}),
        message(2, new, {"past": [{"a": 3, "b": 4}]}),
    ]
    columns = AlertDecoder(Registry(v1=old, v2=new)).columns(values, ["past.a", "past.b"])
    assert columns.batch.to_pydict() == {"past.a": [[1, 2], None, [3]], "past.b": [[None, None], None, [4]]}
    assert columns.batch.schema.types == [pa.list_(pa.int32())] * 2


def test_what_cannot_be_read_is_a_fault_and_stops_nobody() -> None:
    good = message(1, POINT, {"old": 1.5, "n": 1})
    columns = AlertDecoder(Registry(v1=POINT)).columns(
        [b"\x01", good, wire.frame(7, b""), good[:-5], good], ["old"]
    )
    assert columns.batch.to_pylist() == [{"old": 1.5}, {"old": 1.5}]
    assert list(columns.rows) == [1, 4]
    kinds = {at: type(error) for at, error in columns.faults.items()}
    assert kinds == {0: DecodeError, 2: UnknownSchemaError, 3: DecodeError}


def test_a_version_that_the_reader_cannot_hold_makes_faults() -> None:
    strange = {**POINT, "fields": [{"name": "n", "type": "string"}]}
    decoder = AlertDecoder(Registry(v1=strange), reader=NEWER)
    value = message(1, strange, {"n": "one"})
    for _ in range(2):
        with pytest.raises(DecodeError, match="point cannot be read as point: n: a string is no long"):
            decoder.decode(value)
    columns = decoder.columns([value], ["n"])
    assert (columns.batch.num_rows, list(columns.faults)) == (0, [0])
    assert columns.batch.schema.types == [pa.int64()]


def test_containers_are_read_as_the_reader_too(tmp_path: Path) -> None:
    import fastavro

    file = tmp_path / "one.avro"
    with file.open("wb") as out:
        fastavro.writer(out, POINT, [{"old": 1.5, "n": 1}], codec="deflate")
    decoder = AlertDecoder(SchemaRegistry(None), reader=NEWER)
    assert decoder.decode(file.read_bytes()).alert == {"new": 1.5, "n": 1, "extra": None}
    columns = decoder.columns([file.read_bytes()] * 3, ["new"])
    assert columns.batch.to_pylist() == [{"new": 1.5}] * 3


def test_check_fails_where_a_version_cannot_be_read_as_the_next(tmp_path: Path) -> None:
    import json

    for name, schema in (("1", POINT), ("2", NEWER), ("3", {**POINT, "fields": []})):
        (tmp_path / f"{name}.avsc").write_text(json.dumps(schema))
    run = CliRunner().invoke
    good = run(schema_verb, ["check", str(tmp_path / "1.avsc"), str(tmp_path / "2.avsc")])
    assert good.exit_code == 0, good.output
    bad = run(schema_verb, ["check", "--json", str(tmp_path / "3.avsc"), str(tmp_path / "2.avsc")])
    assert bad.exit_code == 1
    (row,) = [row for row in json.loads(bad.output) if (row["written"], row["wanted"]) == ("3", "2")]
    assert row["why"] == ["n: it was not written, and has no default"]
