from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightwire.gateway import author_packet, voevent_fields
from nightwire.gateway.voevent.template import alert_voevent
from nightwire.schemas import survey

TOPIC = "filter.demo.bright"


def sim_alert(**changes: Any) -> dict[str, Any]:
    """An alert with what the template asks for; its other fields do not matter."""
    source = {
        "diaSourceId": 42,
        "diaObjectId": 7,
        "ssObjectId": None,
        "visit": 1234,
        "midpointMjdTai": 61041.0,
        "ra": 150.25,
        "dec": -2.5,
        "psfFlux": 36310.0,
        "psfFluxErr": 3631.0,
        "band": "r",
    }
    return {"diaSourceId": 42, "diaSource": source | changes}


def fields(alert: dict[str, Any]) -> dict[str, Any]:
    document = alert_voevent(survey("lsst").view(alert), survey="lsst", topic=TOPIC, written=1763683200000)
    return voevent_fields(author_packet(document))


def test_an_alert_as_a_voevent_says_what_where_and_when_it_was_and_where_it_came_from() -> None:
    found = fields(sim_alert())
    assert found["ivorn"] == "ivo://nightwire/filter.demo.bright#lsst-42"
    assert found["author"] == "ivo://nightwire/filter.demo.bright"
    assert found["date"] == "2025-11-21T00:00:00"
    assert found["event_time"] == "2025-12-31T23:59:23.000"  # TAI - UTC = 37 s
    assert (found["ra"], found["dec"]) == (150.25, -2.5)
    params = {one["name"]: (one["value"], one["unit"]) for one in found["params"]}
    assert params["flux"] == ("36310.0", "nJy")
    assert params["flux_error"] == ("3631.0", "nJy")
    assert params["snr"][0] == "10.0"
    assert params["band"] == ("r", None)
    assert params["object_id"] == ("7", None)


def test_the_same_record_is_the_same_packet() -> None:
    view = survey("lsst").view(sim_alert())
    made = {alert_voevent(view, survey="lsst", topic=TOPIC, written=1) for _ in range(2)}
    assert len(made) == 1


def test_a_packet_cites_the_earlier_ones_of_its_object_and_says_how_good_its_position_is() -> None:
    earlier = [{"diaSourceId": 100 + n, "midpointMjdTai": 61000.0 + n} for n in range(12)]
    alert = sim_alert(raErr=3e-5, decErr=4e-5, reliability=0.9)
    found = fields(alert | {"prvDiaSources": [*reversed(earlier), {"diaSourceId": None}]})
    ivorns = [f"ivo://nightwire/{TOPIC}#lsst-{100 + n}" for n in range(2, 12)]
    assert found["citations"] == [{"ivorn": one, "cite": "followup"} for one in ivorns]
    assert found["error"] == pytest.approx(5e-5)
    assert {one["name"]: one["value"] for one in found["params"]}["reliability"] == "0.9"


def test_ztf_dates_an_alert_in_utc_and_says_its_magnitudes() -> None:
    candidate = {"candid": 9, "jd": 2461042.5, "ra": 1.0, "dec": 2.0, "fid": 2, "isdiffpos": "t"}
    candidate |= {"magpsf": 18.9, "sigmapsf": 0.1, "rb": 0.8, "drb": None, "pid": 32950012345}
    history = [{"candid": None, "jd": 2461040.5}, {"candid": 8, "jd": 2461041.5, "magpsf": 19.0}]
    alert = {"candid": 9, "objectId": "ZTF18abcdefg", "candidate": candidate, "prv_candidates": history}
    document = alert_voevent(survey("ztf").view(alert), survey="ztf", topic=TOPIC, written=0)
    found = voevent_fields(author_packet(document))
    assert found["event_time"] == "2026-01-02T00:00:00.000"
    params = {one["name"]: (one["value"], one["unit"]) for one in found["params"]}
    assert (params["sigmapsf"], params["rb"][0], params["band"][0]) == (("0.1", "mag"), "0.8", "r")
    assert float(params["magnitude"][0]) == pytest.approx(18.9)
    assert "drb" not in params
    assert found["citations"] == [{"ivorn": f"ivo://nightwire/{TOPIC}#ztf-8", "cite": "followup"}]


NUMBERS = st.one_of(st.none(), st.floats())


@given(st.dictionaries(st.sampled_from(sorted(sim_alert()["diaSource"])), NUMBERS), st.text(max_size=20))
def test_whatever_numbers_and_texts_an_alert_has_its_packet_is_valid(
    numbers: dict[str, float | None], band: str
) -> None:
    ids = {"diaSourceId": 42, "diaObjectId": 7, "visit": 1, "ssObjectId": None, "midpointMjdTai": 61041.0}
    text = "".join(letter for letter in band if letter.isprintable())
    view = survey("sim").view(sim_alert(**{**numbers, **ids, "band": text}))
    documents = {alert_voevent(view, survey="sim", topic=TOPIC, written=1) for _ in range(2)}
    assert len(documents) == 1
    assert author_packet(documents.pop()).ivorn == f"ivo://nightwire/{TOPIC}#sim-42"


@pytest.mark.parametrize("missing", ["ra", "psfFlux", "midpointMjdTai", "band", "diaObjectId"])
def test_what_an_alert_does_not_have_its_packet_leaves_out(missing: str) -> None:
    assert fields(sim_alert(**{missing: None}))["ivorn"].endswith("#lsst-42")
