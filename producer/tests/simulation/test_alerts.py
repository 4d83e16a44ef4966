"""Simulated alerts are like real ones, and tell one story from visit to visit."""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from astropy.io import fits
from astropy.time import Time

from nightwire.producer import Sky, VisitLog, Visits
from nightwire.producer.figures import figures, rubin_figures
from nightwire.producer.simulation.alerts import STAMPS
from nightwire.producer.simulation.sky import mjd_tai, visit_id
from nightwire.schemas import Codec, sim_alert_schema, survey
from nightwire.schemas.wire import read_container

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)

Alerts = list[dict[str, Any]]
Play = Callable[..., list[Alerts]]
Compressors = Mapping[str, Callable[[bytes], bytes]]


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "alerts"), [(1, 300), (2, 450)])
def test_figures_are_those_of_real_alerts(
    seed: int, alerts: int, play: Play, codec: Codec, compressors: Compressors
) -> None:
    real: Any = rubin_figures()
    simulated: Any = figures(
        ((alert, codec.encode(alert)) for alert in play(alerts, seed=seed)[0]), compressors
    )
    for name in ("leaves", "bytes", "sources", "forced"):
        assert simulated[name] == pytest.approx(real[name], rel=0.10), name
    for name in ("lz4", "zstd", "nulls", "all_nulls"):
        assert simulated[name] == pytest.approx(real[name], abs=0.05), name


@pytest.mark.data
def test_the_kept_figures_are_those_of_the_real_file(data: Path, compressors: Compressors) -> None:
    container = (data / "alerts" / "lsst" / "rubin_real_v11_0.avro").read_bytes()
    found: Any = figures(((one.record, one.body) for one in read_container(container)), compressors)
    for name, kept in rubin_figures().items():
        # compressors differ a little by version
        assert found[name] == pytest.approx(kept, rel=0.02), name


@pytest.mark.slow
def test_an_alert_fits_its_schema_and_reads_back(visit: Alerts, codec: Codec) -> None:
    for alert in visit[::20]:
        back = codec.decode(codec.encode(alert))
        assert back["diaSource"]["ra"] == alert["diaSource"]["ra"]
        assert [list(back), list(back["diaSource"])] == [list(alert), list(alert["diaSource"])]


def test_no_two_alerts_share_a_stamp(visit: Alerts) -> None:
    stamps = [alert[name] for alert in visit for name in STAMPS]
    assert len(set(stamps)) == len(stamps)


@pytest.mark.slow
def test_no_two_alerts_share_an_id(play: Play) -> None:
    ids = [alert["diaSourceId"] for alerts in play(100, visits=3) for alert in alerts]
    assert len(set(ids)) == 300


def test_the_same_seed_gives_the_same_bytes_and_another_gives_others(play: Play, codec: Codec) -> None:
    once, again, other = ([codec.encode(alert) for alert in play(40, seed=seed)[0]] for seed in (3, 3, 4))
    assert once == again
    assert not set(once) & set(other)


def test_a_stamp_is_fits_with_image_variance_and_psf(visit: Alerts) -> None:
    for alert in visit[::40]:
        for name in STAMPS:
            with fits.open(BytesIO(alert[name])) as hdus:
                hdus.verify("exception")
                image, variance, psf = hdus
                assert [hdu.name for hdu in hdus] == ["PRIMARY", "UNCERT", "PSFIMAGE"]
                assert image.data.shape == variance.data.shape
                assert (variance.data > 0).all()
                assert psf.data.sum() == pytest.approx(1.0, abs=1e-4)
                assert image.header["CRVAL1"] == pytest.approx(alert["diaSource"]["ra"])


def test_the_difference_stamp_shows_the_source_in_its_middle(visit: Alerts) -> None:
    bright = max(visit, key=lambda alert: (alert["ssSource"] is not None, alert["diaSource"]["snr"]))
    with fits.open(BytesIO(bright["cutoutDifference"])) as hdus:
        image = hdus[0].data
    row, column = np.unravel_index(np.argmax(image), image.shape)
    assert abs(int(row) - 15) <= 2
    assert abs(int(column) - 15) <= 2


@pytest.mark.slow
def test_what_was_seen_at_a_visit_is_in_the_history_at_the_next(play: Play) -> None:
    first, second = play(300, visits=2)
    news = {alert["diaSource"]["diaObjectId"]: alert["diaSource"] for alert in first}
    seen_again = 0
    for alert in second:
        before = news.get(alert["diaSource"]["diaObjectId"])
        if before is None or alert["diaObject"] is None:
            continue
        seen_again += 1
        assert alert["prvDiaSources"][-1] == before
        assert (
            before["visit"] in {row["visit"] for row in alert["prvDiaForcedSources"] or ()}
            or len(alert["prvDiaSources"]) <= 2
        )
    assert seen_again > 300 * 2 / 31  # all variables, and some of the new ones


@pytest.mark.slow
def test_a_new_object_that_lasts_is_followed_for_three_visits(play: Play) -> None:
    alerts = play(300, visits=3)[2]
    lasting = [alert for alert in alerts if len(alert["prvDiaSources"] or ()) == 2]
    assert lasting
    for alert in lasting:
        visits = [row["visit"] for row in [*alert["prvDiaSources"], alert["diaSource"]]]
        assert [visit - visits[0] for visit in visits] == [0, 1, 2]
        assert len({row["diaObjectId"] for row in alert["prvDiaSources"]}) == 1


def test_a_history_is_in_order_and_its_object_sums_it_up(visit: Alerts) -> None:
    for alert in visit:
        history = alert["prvDiaSources"] or []
        times = [row["midpointMjdTai"] for row in [*history, alert["diaSource"]]]
        assert times == sorted(times)
        if alert["diaObject"] is not None:
            assert alert["diaObject"]["nDiaSources"] == len(times)


@pytest.mark.slow
def test_moving_objects_keep_their_identity_and_their_orbit(play: Play) -> None:
    first, second = (
        {alert["ssSource"]["ssObjectId"]: alert for alert in alerts if alert["ssSource"]}
        for alerts in play(200, visits=2)
    )
    assert set(first) == set(second)
    assert len(first) > 40
    for name, alert in first.items():
        assert alert["mpc_orbits"] == second[name]["mpc_orbits"]
        assert alert["diaObject"] is None
        assert alert["diaSource"]["diaObjectId"] is None


def test_a_moving_object_moves_as_its_ephemeris_says() -> None:
    places = []
    start = NOON.replace(hour=1)
    log = VisitLog(7, start)
    field = Visits(Sky(7, 50), log)
    for hour in range(2):
        moment = start + timedelta(hours=hour)
        log.open(moment, visit_id(moment))
        moving = {a["ssSource"]["ssObjectId"]: a for a in field.alerts() if a["ssSource"]}
        places.append(moving)
    for name in set(places[0]) & set(places[1]):
        before, after = (place[name]["diaSource"] for place in places)
        north = (after["dec"] - before["dec"]) * 24.0
        assert north == pytest.approx(places[0][name]["ssSource"]["ephRateDec"], abs=0.003)


def test_times_are_tai() -> None:
    assert mjd_tai(NOON) == pytest.approx(Time(NOON).tai.mjd, abs=1e-9)


def test_an_alert_has_the_time_and_visit_of_its_visit(visit: Alerts) -> None:
    assert {alert["diaSource"]["midpointMjdTai"] for alert in visit} == {mjd_tai(NOON)}
    assert {alert["diaSource"]["visit"] for alert in visit} == {2026030143200}


def test_every_kind_of_key_occurs(visit: Alerts) -> None:
    described = survey("sim")
    keys = {described.key(alert) for alert in visit}
    assert len(keys) == len(visit)
    for alert in visit:
        source = alert["diaSource"]
        owner = source["diaObjectId"] or source["ssObjectId"] or source["diaSourceId"]
        assert described.key(alert) == str(owner).encode()


def test_signal_to_noise_is_that_of_a_survey(visit: Alerts) -> None:
    ratios = np.array([alert["diaSource"]["snr"] for alert in visit])
    assert ratios.min() > 4.8
    assert np.median(ratios) < 15.0
    assert 0.05 < (ratios > 50.0).mean() < 0.35


def fields(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield every field of every record of *schema*."""
    if isinstance(schema, list):
        for branch in schema:
            yield from fields(branch)
    elif isinstance(schema, dict) and "fields" in schema:
        for field in schema["fields"]:
            yield field
            yield from fields(field["type"])
    elif isinstance(schema, dict) and "items" in schema:
        yield from fields(schema["items"])


def test_every_field_is_explained_and_every_quantity_has_its_unit() -> None:
    for field in fields(sim_alert_schema()):
        assert field["doc"].endswith("."), field["name"]
        kinds = field["type"] if isinstance(field["type"], list) else [field["type"]]
        timestamps = any(isinstance(kind, dict) and "logicalType" in kind for kind in kinds)
        if "float" in kinds or "double" in kinds or timestamps:
            assert field["unit"], field["name"]
        if field["name"].endswith("MjdTai"):
            assert "TAI" in field["unit"]
            assert "TAI" in field["doc"]
