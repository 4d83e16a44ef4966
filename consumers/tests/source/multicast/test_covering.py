"""Which channel has all that a condition passes."""

from datetime import UTC, datetime
from typing import Any

import pytest

from nightwire.consumers.source.multicast import group_choice
from nightwire.consumers.source.multicast.covering import covering
from nightwire.core.channels import ChannelMapping

CHANNELS = {
    "all": "TRUE",
    "bright": "magnitude < 19",
    "brighter": "magnitude < 17",
    "red": "band = 'r'",
    "odd": "band = 'r' OR magnitude < 3",
    "none": "magnitude <",
}
MADE = datetime(2026, 11, 25, tzinfo=UTC)


def chosen(where: str, *names: str) -> str | None:
    """Return the channel of those *names* that is chosen."""
    given = [ChannelMapping("alerts.sim", name, CHANNELS[name], "ann", MADE, derived=True) for name in names]
    found = covering(where, "sim", given)
    return found.name if found else None


@pytest.mark.parametrize(
    ("where", "names", "expected"),
    [
        ("magnitude < 16", ("all", "bright", "brighter"), "brighter"),
        ("magnitude < 18 AND band = 'g'", ("all", "bright", "brighter"), "bright"),
        ("magnitude < 18 AND band = 'r'", ("red", "bright"), "red"),
        ("magnitude < 20", ("bright", "brighter", "none"), None),
        ("magnitude < 20", ("bright", "all"), "all"),
        ("band = 'r' OR magnitude < 3", ("all", "odd", "red"), "odd"),
        ("band = 'g' OR magnitude < 3", ("odd", "red", "bright"), None),
        ("band = 'g' OR magnitude < 3", ("odd", "all"), "all"),
        ("magnitude < 18 AND (band = 'g' OR magnitude < 3)", ("bright", "all", "odd"), "bright"),
        ("NOT (magnitude >= 18 OR band = 'g' AND magnitude > 3)", ("brighter", "bright"), "bright"),
        ("TRUE", ("bright", "all"), "all"),
        ("TRUE", (), None),
    ],
)
def test_the_smallest_that_covers_it(where: str, names: tuple[str, ...], expected: str | None) -> None:
    assert chosen(where, *names) == expected


def test_while_channels_stay_as_they_are_nothing_is_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def counted(where: str, *given: Any) -> ChannelMapping | None:
        asked.append(where)
        return covering(where, *given)

    monkeypatch.setattr(group_choice, "covering", counted)
    bright = ChannelMapping(
        "alerts.sim", "b", "magnitude < 19", "ann", MADE, group="239.7.7.7:5400", full=True
    )
    for channels in ((bright,), (bright,), ()):
        found = group_choice.with_group("magnitude < 18.5", "sim", channels)
        assert found == (bright if channels else None)
    assert len(asked) == 2


def test_voevents_have_groups_by_condition_as_surveys_have() -> None:
    seen = ChannelMapping("voevents", "seen", "role = 'observation'", "ann", MADE, group="239.7.7.7:5400")
    assert group_choice.with_group("role = 'observation' AND dec > 0", "voevents", (seen,)) == seen
    assert group_choice.with_group("dec > 0", "voevents", (seen,)) is None
