"""What a source says of its alerts is what a reader says of them."""

import random
from datetime import UTC, datetime

import pytest

from nightwire.core.channels import ChannelMapping, OneSchema
from nightwire.core.channels.judging import ChannelJudges
from nightwire.filters.language import Condition
from nightwire.schemas import SIM_ALERT_ID, AlertDecoder, Codec, sim_alert_schema, wire
from tests._alerts import empty

CONDITIONS = (
    "TRUE",
    "diaSource.psfFlux > 0.1",
    "magnitude < 25 AND band IN ('g', 'r')",
    "diaSource.psfFlux / (visit - 3) > 10",  # it cannot be judged on some
    "id % 7 = 0 OR object_id = 5",
    "diaObject IS NULL",
    "diaSource.nowhere > 1 OR ABS(galactic_latitude) > 15",
)
SIM = OneSchema(Codec(sim_alert_schema()))
MADE = datetime(2026, 11, 25, tzinfo=UTC)


def judges(*conditions: str) -> ChannelJudges:
    """Return what judges channels of these conditions."""
    named = [
        ChannelMapping("alerts.sim", f"c{number}", text, "ann", MADE, derived=True)
        for number, text in enumerate(conditions)
    ]
    return ChannelJudges(named, "sim", SIM)


def values(count: int) -> list[bytes]:
    """Return random alerts, in wire format."""
    draw, blank = random.Random(18), empty(sim_alert_schema())
    found = []
    for number in range(1, count + 1):
        source = {
            **blank["diaSource"], "diaSourceId": number, "diaObjectId": draw.choice([None, 5, 6]),
            "visit": draw.randrange(9), "psfFlux": draw.choice([None, 0.1, draw.gauss(0, 1e5)]),
            "band": draw.choice([None, "g", "r", "i"]),
            "ra": draw.uniform(0, 360), "dec": draw.uniform(-90, 90),
        }  # fmt: skip
        alert = {**blank, "diaSourceId": number, "diaSource": source}
        found.append(wire.frame(SIM_ALERT_ID, SIM.known.encode(alert)))
    return found


@pytest.mark.parametrize("chosen", [CONDITIONS[:5], CONDITIONS, *((one,) for one in CONDITIONS)])
def test_channels_have_what_readers_with_their_conditions_get(chosen: tuple[str, ...]) -> None:
    given, decoder = values(500), AlertDecoder(SIM)
    wanted = [Condition(text, "sim").judge(given, decoder).passed for text in chosen]
    assert judges(*chosen).judge(given) == wanted
    assert judges(*chosen).judge([]) == [frozenset[int]()] * len(chosen)


def test_what_is_no_alert_is_everybodys_for_readers_count_it() -> None:
    given = [*values(3), b"", b"no alert at all", wire.frame(SIM_ALERT_ID, b"\x01")]
    (found,) = judges("diaSource.psfFlux > 1e30").judge(given)
    assert found == {3, 4, 5}


def test_a_condition_that_is_none_is_left_out_and_told() -> None:
    found = judges("magnitude <", "TRUE")
    assert [one.condition for one in found.mappings] == ["TRUE"]
    assert [*found.refused] == ["alerts.sim/c0"]
