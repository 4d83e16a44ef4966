"""Durations as people write them."""

from datetime import timedelta

import pytest
from click.testing import CliRunner

from nightwire.core.cli import main
from nightwire.core.cli.parameter_types import parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30),
        ("5m", 300),
        ("1h", 3600),
        ("2d", 172_800),
        ("1h30m", 5400),
        (" 0.5h ", 1800),
        ("500ms", 0.5),
    ],
)
def test_a_duration_is_a_number_and_a_unit(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("10", "'10' has no unit: write 10s, 10m, 10h or 10d"),
        ("1 hour", "write a number and s, m, h or d"),
        ("1w", "write a number and s, m, h or d"),
        ("-1h", "write a number and s, m, h or d"),
        ("", "write a number and s, m, h or d"),
        ("9999999999d", "shorter than 999999999 days"),
    ],
)
def test_what_is_no_duration_is_refused_with_what_to_write(text: str, advice: str) -> None:
    with pytest.raises(ValueError, match=advice):
        parse_duration(text)


def test_an_option_that_is_no_duration_is_wrong_use() -> None:
    result = CliRunner().invoke(main, ["simulate", "--interval", "soon"])
    assert result.exit_code == 2
    assert "'soon' is no duration" in result.output
