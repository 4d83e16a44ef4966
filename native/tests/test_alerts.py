"""Every real alert: the same bytes out as in, and the values that fastavro reads."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pytest

from nightwire.schemas import Codec, wire
from nightwire.schemas.avro.plans.schema import parse
from nightwire.schemas.survey_model.versions import load_version

pytestmark = [pytest.mark.native, pytest.mark.data]


def bodies(folder: Path) -> Iterator[tuple[Any, bytes]]:
    """Yield schema and body of each alert in the containers and framed messages of *folder*."""
    for path in sorted(folder.rglob("*.avro")):
        value = path.read_bytes()
        if value.startswith(b"Obj"):
            yield from ((one.schema, one.body) for one in wire.read_container(value))
        else:
            schema_id, body = wire.unframe(value)
            version = folder / "schema" / f"{schema_id // 100}.{schema_id % 100}"
            if version.exists():
                yield load_version(version), body


@pytest.mark.parametrize("survey", ["lsst", "ztf", "other"])
def test_real_alerts_come_back_as_they_were(data: Path, survey: str) -> None:
    read = 0
    for schema, body in bodies(data / "alerts" / survey):
        codec = Codec(schema, engine="native")
        alert = codec.decode(body)
        assert repr(alert) == repr(by_fastavro(body, schema)), (survey, read)
        assert codec.encode(alert) == body, (survey, read)
        read += 1
    assert read > 35


def by_fastavro(body: bytes, schema: Any) -> Any:
    """Return fastavro's value."""
    return fastavro.schemaless_reader(io.BytesIO(body), parse(schema), None)


def test_chosen_fields_and_columns_of_rubins_alerts_are_those_of_the_whole(data: Path) -> None:
    records = list(wire.read_container((data / "alerts/lsst/rubin_real_v11_0.avro").read_bytes()))
    codec = Codec(records[0].schema, engine="native")
    fields = [
        "diaSource.psfFlux",
        "diaSource.ra",
        "prvDiaForcedSources.midpointMjdTai",
        "cutoutScience",
        "ssSource",
    ]
    batch = codec.columns([one.body for one in records], fields).to_pydict()
    for at, one in enumerate(records):
        alert, chosen = one.record, codec.decode(one.body, fields)
        earlier = alert["prvDiaForcedSources"]
        wanted = [source["midpointMjdTai"] for source in earlier] if earlier is not None else None
        assert batch["prvDiaForcedSources.midpointMjdTai"][at] == wanted
        assert (
            batch["diaSource.psfFlux"][at] == alert["diaSource"]["psfFlux"] == chosen["diaSource"]["psfFlux"]
        )
        assert chosen["cutoutScience"] == alert["cutoutScience"] == batch["cutoutScience"][at]
        assert chosen["diaSource"].keys() == {"psfFlux", "ra"}
