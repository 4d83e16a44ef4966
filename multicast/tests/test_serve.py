"""What a relay makes of what it is asked for."""

import pytest

from nightwire.core.runtime import Endpoints
from nightwire.multicast.serve import RelaySettings


@pytest.mark.parametrize(
    ("topic", "expected"),
    [("alerts.sim", "sim"), ("voevents", "voevents"), ("alerts.nowhere", ""), ("visits", ""), ("sim", "")],
)
def test_conditions_are_of_surveys_and_of_voevents(topic: str, expected: str) -> None:
    ends = Endpoints("127.0.0.1:9092", None)
    assert RelaySettings(topic, None, "", False, 1, 1, 1472, ends, 0).survey == expected
