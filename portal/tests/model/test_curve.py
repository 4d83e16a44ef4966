"""Light curves of simulated and real alerts, and files of them."""

import io
from pathlib import Path

import numpy as np
import pytest
from astropy.io import fits
from astropy.io.votable import parse_single_table
from astropy.table import Table
from pyarrow import parquet

from nightwire.consumers.alert import ReceivedAlert, known_survey
from nightwire.portal.exports import FORMATS
from nightwire.portal.model import CurvePoint, curve_of
from nightwire.schemas import AlertDecoder, SchemaRegistry, sim_alert_schema
from portal.tests.sample import HOSTILE, MJD, sim_alert
from tests._alerts import empty


def received(alert: dict, survey: str = "sim") -> ReceivedAlert:  # type: ignore[type-arg]
    from datetime import UTC, datetime

    when = datetime(2026, 11, 25, tzinfo=UTC)
    place = (f"alerts.{survey}", 0, 0, when, None, {}, None, {})
    return ReceivedAlert(alert, b"", b"", survey, *place, known_survey(survey))  # type: ignore[arg-type]


def kinds(curve: list[CurvePoint]) -> list[str]:
    return [one.kind for one in curve]


def test_each_measurement_of_an_object_comes_once() -> None:
    older, newer = sim_alert(1, history=3), sim_alert(2, history=0, midpointMjdTai=MJD + 1)
    newer["prvDiaSources"] = [older["diaSource"], *older["prvDiaSources"]]
    curve = curve_of([received(newer), received(older)])
    assert kinds(curve) == ["forced", *["detection"] * 5]
    assert [one.alert for one in curve][-2:] == ["1", "2"]
    assert curve[-1].magnitude == pytest.approx(22.5, abs=1e-3)  # 3631 nJy
    assert curve[-1].magnitude_error == pytest.approx(0.1085, abs=1e-3)
    assert (MJD + 1 - (curve[-1].mjd or 0)) * 86_400 == pytest.approx(37, abs=0.01)


def test_faint_forced_photometry_is_an_upper_limit_of_three_errors() -> None:
    (faint, *_) = curve_of([received(sim_alert(1, history=1))])
    assert (faint.kind, faint.band) == ("forced", "g")
    assert faint.limit == pytest.approx(31.4 - 2.5 * np.log10(3 * 36.31), abs=1e-6)


def test_fields_that_hold_what_they_must_not_are_passed_over() -> None:
    alert = empty(sim_alert_schema())
    alert["prvDiaSources"] = [{"midpointMjdTai": "soon", "psfFlux": 1.0}, "none", None]
    alert["diaSource"] |= {"midpointMjdTai": float("nan")}
    assert curve_of([received(alert)]) == []


@pytest.mark.data
def test_upper_limits_and_forced_photometry_of_ztf_are_told_apart(data: Path) -> None:
    decoder, seen = AlertDecoder(SchemaRegistry(None)), set()
    for path in sorted((data / "alerts" / "ztf").rglob("*.avro"))[:40]:
        decoded = decoder.decode(path.read_bytes())
        curve = curve_of([received(decoded.alert, "ztf")])
        seen |= set(kinds(curve))
        assert all(one.limit is not None and one.flux is None for one in curve if one.kind == "limit")
    assert {"detection", "limit"} <= seen


def test_every_format_holds_every_measurement_with_its_unit() -> None:
    curve = curve_of([received(sim_alert(1, history=3, band=HOSTILE))])
    files = {form: make(curve, HOSTILE) for form, (_, make) in FORMATS.items()}
    mjd = [one.mjd for one in curve]
    assert Table.read(files["csv"].decode(), format="ascii.csv")["mjd"].tolist() == mjd
    with fits.open(io.BytesIO(files["fits"])) as units:
        assert units[1].data["mjd"].tolist() == mjd
        assert units[1].columns["flux"].unit == "nJy"
    votable = parse_single_table(io.BytesIO(files["votable"]))
    assert votable.to_table()["mjd"].tolist() == mjd
    assert votable.get_field_by_id_or_name("flux").unit == "nJy"
    assert parquet.read_table(io.BytesIO(files["parquet"]))["mjd"].to_pylist() == mjd


STRANGE = CurvePoint(MJD, MJD, "=1+µ", "detection", 1.0, 1.0, 20.0, 1.0, None, 1.0, 1.0, "@\x01ß")


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", ["ZTF", "a\nb", "µ\x01"])
def test_texts_of_strangers_break_no_file(form: str, name: str) -> None:
    file = FORMATS[form][1]([STRANGE], name)
    if form == "csv":
        assert file.count(b",'=1+") == file.count(b",'@") == 1
    if form == "votable":
        assert len(parse_single_table(io.BytesIO(file)).to_table()) == 1
    if form == "fits":
        assert Table.read(io.BytesIO(file))["band"][0] == "=1+?"


def test_a_magnitude_whose_error_has_no_end_has_none() -> None:
    (found,) = curve_of([received(sim_alert(1, psfFlux=1e-200, psfFluxErr=1e200))])
    assert found.magnitude_error is None or np.isfinite(found.magnitude_error)
