"""Repeated lines are few, and none is left out uncounted."""

import io
import logging

from nightwire.core.runtime.log_repeats import FIRST, INTERVAL, AggregatingHandler


def lines_of(times: list[float], level: int = logging.WARNING) -> list[str]:
    """Return what is written of lines that come at *times* [s], and at the end."""
    now, out = [0.0], io.StringIO()
    handler = AggregatingHandler(out, clock=lambda: now[0])
    for number, now[0] in enumerate(times):
        handler.handle(logging.LogRecord("a", level, "", 0, "refused: %d", (number,), None))
    handler.close()
    return out.getvalue().splitlines()


def test_a_burst_is_a_few_lines_and_their_number() -> None:
    told = lines_of([0.0] * 300)
    assert told == [*(f"refused: {n}" for n in range(FIRST)), "290 more like this, the last: refused: 299"]


def test_what_goes_on_is_told_once_in_an_interval() -> None:
    told = lines_of([float(second) for second in range(int(3 * INTERVAL))])
    assert len(told) < FIRST + 8
    assert told[FIRST : FIRST + 2] == ["59 more like this, the last: refused: 68", "refused: 69"]


def test_what_comes_again_after_a_silence_is_told_anew() -> None:
    assert lines_of([0.0, INTERVAL + 1])[-1] == "refused: 1"
    assert len(lines_of([0.0] * FIRST + [INTERVAL + 1] * FIRST)) == 2 * FIRST


def test_what_is_no_warning_is_always_told() -> None:
    assert len(lines_of([0.0] * 300, logging.INFO)) == 300
