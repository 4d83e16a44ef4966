"""Every real alert: the same bytes out as in, and the values that fastavro reads."""

import io
from pathlib import Path
from typing import Any

import fastavro
import pytest

from nightwire.schemas import Codec, wire
from nightwire.schemas._parse import parse

pytestmark = [pytest.mark.native, pytest.mark.data]


@pytest.mark.parametrize("survey", ["lsst", "ztf", "other"])
def test_real_alerts_come_back_as_they_were(data: Path, survey: str) -> None:
    read = 0
    for path in sorted((data / "alerts" / survey).rglob("*.avro")):
        for one in wire.read_container(path.read_bytes()):
            codec = Codec(one.schema, engine="native")
            alert = codec.decode(one.body)
            assert repr(alert) == repr(by_fastavro(one.body, one.schema)), path
            assert codec.encode(alert) == one.body, path
            read += 1
    assert read >= 30


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
