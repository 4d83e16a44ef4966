"""Durations and moments."""

from datetime import UTC, datetime, timedelta

import pytest

from nightwire.consumers.source.timespec import milliseconds, parse_since


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("-1h", "write a number and s, m, h or d"),
        ("0s", "longer than zero"),
        ("9999999999d", "shorter than 999999999 days"),
        ("20261121", "has no unit"),
    ],
)
def test_what_is_no_duration_is_refused_with_what_to_write(text: str, advice: str) -> None:
    with pytest.raises(ValueError, match=advice):
        parse_since(text)


@pytest.mark.parametrize(
    "text", ["2026-11-21T03:00", "2026-11-21T03:00Z", "2026-11-21T04:00+01:00", "2026-11-21 03:00:00"]
)
def test_a_moment_is_utc_unless_it_says_otherwise(text: str) -> None:
    assert parse_since(text) == datetime(2026, 11, 21, 3, tzinfo=UTC)


def test_kafka_counts_milliseconds_since_1970() -> None:
    now = datetime(2026, 11, 21, 3, tzinfo=UTC)
    assert milliseconds(timedelta(hours=1), now) == 1_795_226_400_000
    assert milliseconds(datetime(1970, 1, 2, tzinfo=UTC), now) == 86_400_000
    with pytest.raises(TypeError, match="since='1h': write a timedelta"):
        milliseconds("1h", now)  # type: ignore[arg-type]
    assert milliseconds(timedelta(days=99_999), now) == 0


def test_a_moment_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="tzinfo=UTC"):
        milliseconds(datetime(2026, 11, 21), datetime.now(UTC))  # noqa: DTZ001  (that is the point)
