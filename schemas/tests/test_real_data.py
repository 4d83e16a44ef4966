"""Real alerts, and real bad ones: what NIGHTWIRE_DATA holds."""

import math
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nightwire.schemas import AlertDecoder, Codec, DecodeError, SchemaRegistry, survey, wire
from nightwire.schemas.avro.arrow import column_type
from nightwire.schemas.avro.plans.schema import Types, parse
from nightwire.schemas.survey_model.versions import load_version

pytestmark = pytest.mark.data


def unpacked(folder: Path, tmp_path: Path) -> Iterator[Path]:
    """Yield the Avro files in *folder*, archives unpacked."""
    yield from sorted(folder.rglob("*.avro"))
    for archive in sorted([*folder.rglob("*.tar.gz"), *folder.rglob("*.zip")]):
        target = tmp_path / archive.name
        if archive.suffix == ".zip":
            with zipfile.ZipFile(archive) as zipped:
                zipped.extractall(target)  # noqa: S202  (our own data)
        else:
            with tarfile.open(archive) as opened:
                opened.extractall(target, filter="data")
        yield from sorted(target.rglob("*.avro"))


def check_view(name: str, alert: dict[str, Any]) -> None:
    """Check that an alert has what every alert has, in the units that we say."""
    view = survey(name).view(alert)
    assert view.id
    assert survey(name).key(alert)
    assert view.visit
    assert 0 <= view.ra < 360
    assert -90 <= view.dec <= 90
    assert 58_000 < view.mjd_tai < 62_000
    assert view.band in "ugrizy"
    assert 30 < abs(view.flux) < 1e9
    assert 2 < view.snr < 1e4
    assert all(point.mjd_tai < view.mjd_tai + 1e-3 for point in view.history)
    assert all(point.flux is None or math.isfinite(point.flux) for point in view.history)


def test_rubins_alerts_are_read_whole(data: Path) -> None:
    records = list(wire.read_container((data / "alerts/lsst/rubin_real_v11_0.avro").read_bytes()))
    codec = Codec(records[0].schema)
    assert len(records) == 32
    assert len({survey("lsst").alert_id(one.record) for one in records}) == 32
    for one in records:
        assert codec.decode(one.body) == one.record
        assert codec.encode(one.record) == one.body
        check_view("lsst", one.record)
        stamps = survey("lsst").view(one.record).stamps
        assert list(stamps) == ["difference", "science", "template"]
        assert all(stamp.startswith(b"SIMPLE  =") for stamp in stamps.values())


def test_rubins_alerts_as_columns_are_their_values(data: Path) -> None:
    records = list(wire.read_container((data / "alerts/lsst/rubin_real_v11_0.avro").read_bytes()))
    fields = ["diaSource.psfFlux", "prvDiaSources.psfFlux", "diaObject.nDiaSources", "cutoutScience"]
    batch = Codec(records[0].schema).columns([one.body for one in records], fields)
    for row, one in zip(batch.to_pylist(), records, strict=True):
        alert = one.record
        assert row["diaSource.psfFlux"] == alert["diaSource"]["psfFlux"]
        assert row["cutoutScience"] == alert["cutoutScience"]
        earlier = alert["prvDiaSources"]
        assert row["prvDiaSources.psfFlux"] == (earlier and [source["psfFlux"] for source in earlier])
        assert row["diaObject.nDiaSources"] == (alert["diaObject"] and alert["diaObject"]["nDiaSources"])


def test_ztfs_alerts_are_read_whole(data: Path, tmp_path: Path) -> None:
    decoder, versions, count = AlertDecoder(SchemaRegistry(None)), set(), 0
    for path in unpacked(data / "alerts/ztf", tmp_path):
        decoded = decoder.decode(path.read_bytes())
        assert Codec(decoded.schema).decode(decoded.body) == decoded.alert
        assert decoded.body in path.read_bytes()
        check_view("ztf", decoded.alert)
        versions.add(decoded.schema["version"])
        count += 1
    assert count > 90
    assert {"3.0", "4.02"} <= versions


def test_other_surveys_containers_are_read(data: Path) -> None:
    for path in sorted((data / "alerts/other").rglob("*.avro")):
        for one in wire.read_container(path.read_bytes()):
            # NaN is not equal to itself
            assert repr(Codec(one.schema).decode(one.body)) == repr(one.record)


@pytest.mark.parametrize("version", ["7.1", "7.4", "8.0", "9.0", "10.0", "11.0", "11.1"])
def test_the_description_of_lsst_fits_every_published_schema(data: Path, version: str) -> None:
    types = Types(parse(load_version(data / "alerts/lsst/schema" / version)))
    described = survey("lsst").description
    for one in [described.source, *described.history]:
        for name in (one.time, one.ra, one.dec, one.band, one.flux, one.flux_error):
            assert column_type(types, f"{one.path}.{name}")
    ids = described.ids
    for path in [
        ids.alert[0],
        ids.object[0],
        ids.solar_system_object[0],
        ids.visit[0],
        *described.stamps.values(),
    ]:
        assert column_type(types, path)


@pytest.mark.parametrize("version", ["7.1", "7.4", "8.0", "9.0", "10.0", "11.0", "11.1"])
def test_rubins_messages_decode_with_their_published_schemas(data: Path, version: str) -> None:
    """Ids are 100 x major + minor, big-endian."""
    major, minor = version.split(".")
    codec = Codec(load_version(data / "alerts/lsst/schema" / version))
    folder = data / "alerts/lsst/wire"
    for path in folder.glob(f"*v{major}_{minor}*"):
        schema_id, body = wire.unframe(path.read_bytes())
        assert schema_id == 100 * int(major) + int(minor)
        alert = codec.decode(body)
        assert codec.encode(alert) == body
        assert survey("lsst").key(alert)
        assert survey("lsst").view(alert).mjd_tai is not None


def test_bad_containers_are_refused_by_name(data: Path) -> None:
    decoder, reasons = AlertDecoder(SchemaRegistry(None)), {}
    for path in (data / "alerts/bad").rglob("*.avro"):
        with pytest.raises(DecodeError) as caught:
            decoder.decode(path.read_bytes())
        reasons[path.name] = str(caught.value)
    assert "redefined named type: atlas.alert.cutout" in reasons.pop("atlas_redefined_type.avro")
    assert set(reasons.values()) == {"the container's schema is not that of a record"}
    assert len(reasons) == 5


def test_a_prototype_of_ztf_is_read_as_far_as_it_goes(data: Path, tmp_path: Path) -> None:
    """An alert of 2017, schema 1.2: without an object id, and with JPEG stamps."""
    (path,) = (path for path in unpacked(data / "alerts/bad", tmp_path) if path.is_relative_to(tmp_path))
    alert = AlertDecoder(SchemaRegistry(None)).decode(path.read_bytes()).alert
    view = survey("ztf").view(alert)
    assert (view.object_id, survey("ztf").key(alert)) == (None, b"-121540793515135009")
    assert all(stamp.startswith(b"\xff\xd8") for stamp in view.stamps.values())


def test_elasticcs_alerts_are_read_whole(data: Path) -> None:
    """Fluxes have the zero point 27.5, so a flux of 149.6 is of magnitude 22.06."""
    found = survey("elasticc")
    for path in sorted((data / "alerts/other/elasticc/samples").glob("*.avro")):
        (one,) = wire.read_container(path.read_bytes())
        codec = Codec(one.schema)
        assert codec.encode(one.record) == one.body
        check_view("elasticc", one.record)
        view = found.view(codec.decode(one.body, found.fields(one.schema)))
        assert (view.id, view.flux, view.mjd_tai) == (
            found.alert_id(one.record),
            found.view(one.record).flux,
            found.view(one.record).mjd_tai,
        )
        curve = found.view(one.record).light_curve()
        assert len({len(column) for column in curve.values()}) == 1
        assert (curve["mjd_tai"][1:] >= curve["mjd_tai"][:-1]).all()
        if path.name == "alert_mjd59583.0511_obj1131_src2262003.avro":
            assert view.magnitude == pytest.approx(22.06, abs=0.01)


@pytest.mark.parametrize("name", ["lsst", "ztf"])
def test_the_fields_of_canonical_attributes_are_enough_for_a_view(
    data: Path, tmp_path: Path, name: str
) -> None:
    found = survey(name)
    files = {
        "lsst": [data / "alerts/lsst/rubin_real_v11_0.avro"],
        "ztf": list(unpacked(data / "alerts/ztf", tmp_path)),
    }
    for path in files[name][:20]:
        for one in wire.read_container(path.read_bytes()):
            whole = found.view(one.record)
            part = found.view(Codec(one.schema).decode(one.body, found.fields(one.schema, stamps=True)))
            for attribute in (
                "id",
                "object_id",
                "visit",
                "flux",
                "flux_error",
                "mjd_tai",
                "ra",
                "dec",
                "band",
            ):
                assert getattr(part, attribute) == getattr(whole, attribute)
            assert [point.flux for point in part.history] == [point.flux for point in whole.history]
            assert {key: bytes(stamp) for key, stamp in part.stamps.items()} == whole.stamps
