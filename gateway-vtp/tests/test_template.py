from typing import Any

import pytest

from nightwire.gateway import author_packet, voevent_fields
from nightwire.gateway._template import alert_voevent
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


@pytest.mark.parametrize("missing", ["ra", "psfFlux", "midpointMjdTai", "band", "diaObjectId"])
def test_what_an_alert_does_not_have_its_packet_leaves_out(missing: str) -> None:
    assert fields(sim_alert(**{missing: None}))["ivorn"].endswith("#lsst-42")
