"""Real alerts of Rubin and ZTF: archived whole, and as columns."""

import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from archive.tests.conftest import NOON, Known
from nightwire.archive import Archive
from nightwire.archive.storage import Packet, Store
from nightwire.archive.writing import SurveyWriter
from nightwire.schemas import Codec, survey
from nightwire.schemas.wire import frame, read_container

pytestmark = [pytest.mark.data, pytest.mark.slow]


def archive(folder: Path, name: str, values: list[bytes], registry: Known) -> SurveyWriter:
    """Archive *values*, in three commits."""
    tables = SurveyWriter(Store(folder), name, registry)
    packets = [Packet(tables.topic, 0, n, NOON, None, (), value) for n, value in enumerate(values)]
    for first in range(0, len(packets), 40):
        written = tables.write(packets[first : first + 40], {(tables.topic, 0): first or None})
        assert not written.faults
    return tables


def test_rubins_alerts_are_archived(data: Path, tmp_path: Path) -> None:
    records = list(read_container((data / "alerts/lsst/rubin_real_v11_0.avro").read_bytes()))
    codec = Codec(records[0].schema)
    values = [frame(1100, one.body) for one in records]
    archive(tmp_path, "lsst", values, Known(v1100=codec))
    view = survey("lsst").view(records[5].record)
    with Archive(tmp_path) as found:
        (row,) = found.get(
            view.id, columns=["id", "ra", "diaSource.psfFlux", "diaSource.reliability"]
        ).to_pylist()
        assert row["ra"] == view.ra
        assert row["psfFlux"] == pytest.approx(view["diaSource"]["psfFlux"])
        assert found.packets(view.id)[0].value == values[5]
        assert found.cone(view.ra, view.dec, 1e-6).column("id")[0].as_py() == str(view.id)
        curve = found.light_curve(view.object_id or view.solar_system_id)
        assert len(curve) >= len(view.history) + 1
        assert (
            found.query("SELECT count(*) AS n FROM lsst WHERE diaSource.psfFlux > 0").to_pylist()[0]["n"] > 0
        )


def containers(folder: Path, scratch: Path) -> Iterator[bytes]:
    for path in sorted(folder.rglob("*.zip")):
        zipfile.ZipFile(path).extractall(scratch)
    for path in sorted([*folder.rglob("*.avro"), *scratch.rglob("*.avro")]):
        yield path.read_bytes()


def test_ztfs_alerts_are_archived_though_each_brings_its_schema(data: Path, tmp_path: Path) -> None:
    values = list(containers(data / "alerts/ztf", tmp_path / "scratch"))
    assert len(values) > 30
    archive(tmp_path / "archive", "ztf", values, Known())
    with Archive(tmp_path / "archive") as found:
        rows = found.query("SELECT id, object_id, candidate.magpsf AS m, schema_id FROM ztf").to_pylist()
        assert len(rows) == len(values)
        assert all(row["object_id"].startswith("ZTF") and row["schema_id"] is None for row in rows)
        whole = found.packets(rows[0]["id"])
        assert found.decode(whole[0]).alert["candid"] == int(rows[0]["id"])
        assert len(found.light_curve(rows[0]["object_id"])) > 0
