"""Released schemas of ours: an id keeps its schema, and newer schemas read all old samples.

``released/<id>.avsc`` is a schema as it was released, ``released/<id>.hex`` a record written with
it.  A changed schema gets the next free id (see the README); then ``python -m
schemas.tests.test_released`` adds its two files.  It never changes those that are there.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from nightwire.schemas import SIM_ALERT_ID, Codec, records
from nightwire.schemas.avro.plans.resolve import resolve
from nightwire.schemas.avro.plans.schema import Types, kind, parse, type_name

FOLDER = Path(__file__).parent / "released"
IDS = sorted({SIM_ALERT_ID, *(record.schema_id for record in records.RECORDS)})
RELEASED = sorted(int(path.stem) for path in FOLDER.glob("*.avsc"))


def schema(schema_id: int) -> dict[str, Any]:
    """Return a schema as it was released."""
    return json.loads((FOLDER / f"{schema_id}.avsc").read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def sample(types: Types, wanted: Any) -> Any:
    """Return a type's fixed value: no nulls, one item in each array and map."""
    branch = next((one for one in types.branches(wanted) if kind(one) != "null"), "null")
    match kind(branch):
        case "record":
            return {field["name"]: sample(types, field["type"]) for field in branch["fields"]}
        case "array":
            return [sample(types, branch["items"])]
        case "map":
            return {"key": sample(types, branch["values"])}
        case "enum":
            return branch["symbols"][-1]
        case "fixed":
            return bytes(range(branch["size"]))
    return {"boolean": True, "int": -65, "long": 1 << 40, "float": 1.5, "double": -2.25}.get(
        kind(branch), b"\x00\xff" if kind(branch) == "bytes" else "text" if kind(branch) == "string" else None
    )


def release(schema_id: int) -> None:
    """Write a schema and a sample of it."""
    found = records.own_schema(schema_id)
    assert found is not None
    types = Types(parse(found))
    body = Codec(found).encode(sample(types, types.root))
    (FOLDER / f"{schema_id}.avsc").write_text(
        json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    (FOLDER / f"{schema_id}.hex").write_text(body.hex() + "\n")


@pytest.mark.parametrize("schema_id", IDS)
def test_a_released_schema_never_changes(schema_id: int) -> None:
    assert schema_id in RELEASED, "a new schema: run python -m schemas.tests.test_released"
    assert records.own_schema(schema_id) == schema(schema_id), (
        "a changed schema gets a new id; see the README"
    )


@pytest.mark.slow
@pytest.mark.parametrize("schema_id", RELEASED)
def test_a_sample_is_read_by_its_own_schema_and_by_every_newer_one(engine: str, schema_id: int) -> None:
    body = bytes.fromhex((FOLDER / f"{schema_id}.hex").read_text())
    written = schema(schema_id)
    name = type_name(parse(written))
    for newer in (one for one in RELEASED if one >= schema_id and type_name(parse(schema(one))) == name):
        resolution = resolve(parse(written), parse(schema(newer)))
        assert not [*resolution.mismatches, *resolution.conditions]
        assert Codec(written, reader=schema(newer), engine=engine).decode(body)
    own = Codec(written, engine=engine)
    assert own.encode(own.decode(body)) == body


if __name__ == "__main__":
    for missing in sorted(set(IDS) - set(RELEASED)):
        release(missing)
