"""Surveys: where each keeps what, and that it comes out the same."""

import gzip
import math
from typing import Any

import pytest
from astropy.time import Time

from nightwire.schemas import AlertTable, DecodeError, SchemaError, sim_alert_schema, survey, surveys
from nightwire.schemas.avro.arrow import column_type
from nightwire.schemas.avro.plans.schema import Types, parse
from nightwire.schemas.records import VOEVENT
from nightwire.schemas.survey_model.astro import mjd_tai
from nightwire.schemas.survey_model.description import parse_description
from nightwire.schemas.topics import named_survey, records_topic

RUBIN: dict[str, Any] = {
    "diaSourceId": 1,
    "diaSource": {
        "diaSourceId": 1,
        "visit": 2026030500055,
        "diaObjectId": 22,
        "ssObjectId": 0,
        "midpointMjdTai": 61105.25,
        "ra": 63.5,
        "dec": -47.25,
        "psfFlux": -3631.0,
        "psfFluxErr": 363.1,
        "band": "i",
    },
    "prvDiaSources": [
        {"midpointMjdTai": 61090.5, "psfFlux": 10.0, "psfFluxErr": 2.0, "band": "r", "ra": 1.0, "dec": 2.0},
        {"midpointMjdTai": 61080.5, "psfFlux": None, "psfFluxErr": None, "band": None, "ra": 1.0, "dec": 2.0},
    ],
    "prvDiaForcedSources": [{"midpointMjdTai": 61085.5, "psfFlux": 9.0, "psfFluxErr": 3.0, "band": "g"}],
    "cutoutScience": b"SIMPLE",
    "cutoutTemplate": None,
}
ZTF: dict[str, Any] = {
    "candid": 1127561442515015001,
    "objectId": "ZTF20aafsnpp",
    "candidate": {
        "jd": 2458882.0614468,
        "fid": 2,
        "pid": 1127561442515,
        "ra": 204.336886,
        "dec": 61.9860006,
        "magpsf": 18.9,
        "sigmapsf": 0.1,
        "isdiffpos": "f",
    },
    "prv_candidates": [{"jd": 2458854.0, "fid": 1, "magpsf": None, "sigmapsf": None, "isdiffpos": None}],
    "fp_hists": [
        {"jd": 2458853.0, "fid": 3, "forcediffimflux": 100.0, "forcediffimfluxunc": 10.0, "magzpsci": 26.4},
        {
            "jd": 2458852.0,
            "fid": 3,
            "forcediffimflux": -99999.0,
            "forcediffimfluxunc": -99999.0,
            "magzpsci": 26.4,
        },
    ],
    "cutoutScience": {"fileName": "a.fits.gz", "stampData": gzip.compress(b"SIMPLE")},
}


def changed(**source: Any) -> dict[str, Any]:
    """Return RUBIN with other values in its source."""
    return {**RUBIN, "diaSource": {**RUBIN["diaSource"], **source}}


def test_there_are_four_surveys() -> None:
    assert surveys() == ["elasticc", "lsst", "sim", "ztf"]
    with pytest.raises(SchemaError, match="'atlas'; there are: elasticc, lsst, sim, ztf"):
        survey("atlas")


@pytest.mark.parametrize("name", ["lsst", "sim"])
def test_a_rubin_alert_by_canonical_names(name: str) -> None:
    view = survey(name).view(RUBIN)
    assert (view.id, view.object_id, view.solar_system_id, view.visit) == (1, 22, None, 2026030500055)
    assert (view.ra, view.dec, view.mjd_tai, view.band) == (63.5, -47.25, 61105.25, "i")
    assert (view.flux, view.flux_error, view.snr) == (-3631.0, 363.1, pytest.approx(10))
    assert view.magnitude == pytest.approx(22.5)
    assert view.stamps == {"science": b"SIMPLE"}
    assert view["diaSource"]["band"] == "i"
    assert set(view) == set(RUBIN)
    assert len(view) == len(RUBIN)


def test_history_is_in_order_of_time_and_holds_forced_photometry() -> None:
    history = survey("lsst").view(RUBIN).history
    assert [point.mjd_tai for point in history] == [61080.5, 61085.5, 61090.5]
    assert [(point.flux, point.flux_error, point.band) for point in history][1:] == [
        (9.0, 3.0, "g"),
        (10.0, 2.0, "r"),
    ]
    assert (history[0].flux, history[0].snr, history[0].magnitude, history[0].band) == (
        None,
        None,
        None,
        None,
    )


def test_a_ztf_alert_by_canonical_names() -> None:
    view = survey("ztf").view(ZTF)
    assert (view.id, view.object_id, view.visit, view.band) == (
        1127561442515015001,
        "ZTF20aafsnpp",
        112756144,
        "r",
    )
    assert view.mjd_tai == pytest.approx(Time(2458882.0614468, format="jd", scale="utc").tai.mjd, abs=1e-9)
    assert view.flux == pytest.approx(-1e5, rel=1e-3)  # 18.9 mag are 100 µJy
    assert view.flux_error == pytest.approx(1e5 * 0.0921, rel=1e-3)
    assert view.magnitude == pytest.approx(18.9)
    assert view.stamps == {"science": b"SIMPLE"}


def test_ztf_upper_limits_and_missing_forced_photometry_have_no_flux() -> None:
    missing, forced, limit = survey("ztf").view(ZTF).history
    assert (missing.flux, missing.flux_error, limit.flux, limit.flux_error) == (None, None, None, None)
    assert forced.flux == pytest.approx(100 * 10 ** (-0.4 * (26.4 - 31.4)), rel=1e-3)
    assert (forced.snr, forced.band) == (pytest.approx(10), "i")


@pytest.mark.parametrize(("sign", "positive"), [("t", True), ("1", True), ("f", False), ("0", False)])
def test_ztf_writes_the_sign_in_two_ways(sign: str, positive: bool) -> None:
    flux = survey("ztf").view({**ZTF, "candidate": {**ZTF["candidate"], "isdiffpos": sign}}).flux
    assert (flux > 0) is positive


@pytest.mark.parametrize(
    ("alert", "key"),
    [
        (RUBIN, b"22"),
        (changed(diaObjectId=0, ssObjectId=33), b"33"),
        (changed(diaObjectId=None, ssObjectId=33), b"33"),
        (changed(diaObjectId=0, ssObjectId=0), b"1"),
        (changed(diaObjectId=None, ssObjectId=None), b"1"),
    ],
)
def test_the_key_is_the_object_else_the_solar_system_object_else_the_alert(
    alert: dict[str, Any], key: bytes
) -> None:
    assert survey("lsst").key(alert) == key


def test_a_stranger_has_no_key() -> None:
    with pytest.raises(
        DecodeError, match=r"no alert of survey lsst: no diaSource\.diaSourceId or diaSourceId"
    ):
        survey("lsst").key({"candid": 1})


def test_what_is_not_there_is_none() -> None:
    view = survey("lsst").view({"diaSourceId": 5})
    assert (view.id, view.ra, view.mjd_tai, view.flux, view.snr, view.magnitude, view.band) == (
        5,
        *[None] * 6,
    )
    assert (view.history, view.stamps, view.visit) == ([], {}, None)


@pytest.mark.parametrize("flux", [math.nan, math.inf, None])
def test_what_is_no_number_is_none(flux: float | None) -> None:
    view = survey("lsst").view(changed(psfFlux=flux))
    assert (view.flux, view.snr, view.magnitude) == (None, None, None)


def test_zero_flux_has_no_magnitude_and_zero_error_no_snr() -> None:
    assert survey("lsst").view(changed(psfFlux=0.0)).magnitude is None
    assert survey("lsst").view(changed(psfFluxErr=0.0)).snr is None


def test_a_stamp_that_cannot_be_unpacked_is_named() -> None:
    view = survey("ztf").view({**ZTF, "cutoutScience": {"stampData": b"\x1f\x8bnonsense"}})
    with pytest.raises(DecodeError, match="stamp science"):
        _ = view.stamps


@pytest.mark.parametrize("mjd", [41317.0, 50630.0, 56108.9, 57753.25, 57753.999, 57754.0, 60000.5, 61365.0])
def test_utc_becomes_tai_as_astropy_says(mjd: float) -> None:
    """Among them the day of a leap second (57753), which has 86,401 s."""
    assert mjd_tai(mjd, "utc") == pytest.approx(Time(mjd, format="mjd", scale="utc").tai.mjd, abs=1e-10)


def test_tai_stays_as_it_is() -> None:
    assert mjd_tai(61105.25, "tai") == 61105.25
    with pytest.raises(ValueError, match="before 1972"):
        mjd_tai(40000.0, "utc")


@pytest.mark.parametrize("fault", [{"flx": "x"}, {"time_scale": "ut1"}])
def test_a_faulty_description_is_named(fault: dict[str, Any]) -> None:
    source = {
        "path": "s",
        "time": "t",
        "time_scale": "tai",
        "time_zero": 0.0,
        "ra": "r",
        "dec": "d",
        "band": "b",
    }
    table = {"title": "T", "ids": {"alert": ["id"], "object": []}, "source": {**source, **fault}}
    with pytest.raises(SchemaError, match=r"flx|time_scale"):
        parse_description("t", table)
    assert parse_description("t", {**table, "source": source}).name == "t"


def test_what_the_simulated_survey_names_is_in_its_schema() -> None:
    """The description and the schema are written in two places; they must not part."""
    described = survey("sim").description
    types = Types(parse(sim_alert_schema()))
    for one in [described.source, *described.history]:
        for name in (one.time, one.band, one.flux, one.flux_error):
            assert column_type(types, f"{one.path}.{name}")
    for path in [
        *described.stamps.values(),
        described.ids.alert[0],
        described.ids.object[0],
        described.ids.visit[0],
    ]:
        assert column_type(types, path)


def test_voevents_are_described_as_a_survey_is_but_are_none() -> None:
    bare = dict.fromkeys(("author", "date", "error", "coord_system")) | {"params": [], "citations": []}
    event = bare | {"ivorn": "ivo://a/b#1", "role": "test", "version": "2.0", "origin": "author"}
    event |= {"event_time": "2026-11-25T18:00:00.5", "ra": 10.0, "dec": -5.0, "received": 0, "raw": b"<x/>"}
    events, described = (
        [event, event | {"event_time": None, "ra": None}, event | {"event_time": "?"}],
        survey("voevents"),
    )
    codec, names = VOEVENT.codec, ("id", "object_id", "mjd_tai", "ra", "dec", "healpix", "band", "magnitude")
    paths = AlertTable.fields(names, described)
    table = AlertTable(codec.columns([codec.encode(one) for one in events], paths), described)
    for row, view in enumerate(map(described.view, events)):
        assert [table[name].items[row] for name in names] == [getattr(view, name) for name in names]
    assert [view.mjd_tai for view in map(described.view, events)] == [
        pytest.approx(61369.750434, abs=1e-6),
        None,
        None,
    ]
    assert "voevents" not in surveys()
    assert [records_topic("voevents"), records_topic("ztf")] == ["voevents", "alerts.ztf"]
    assert [*map(named_survey, ("voevents", "alerts.ztf", "alerts.", "visits"))] == [
        "voevents",
        "ztf",
        None,
        None,
    ]
