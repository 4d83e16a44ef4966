"""Durations as people write them: ``30s``, ``1h30m``, ``500ms``."""

import re
from datetime import timedelta
from typing import Any

import click

UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
"""Length of each unit. [s]"""

_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhd])")
_DURATION = re.compile(rf"(?:{_PART.pattern})+")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def parse_duration(text: str) -> timedelta:
    """Return the duration in *text*, such as ``30s``, ``5m``, ``1h30m``, ``2d`` or ``500ms``.

    Raises:
        ValueError: It is malformed; the message says what to write.
    """
    text = text.strip()
    if _NUMBER.fullmatch(text):
        raise ValueError(f"{text!r} has no unit: write {text}s, {text}m, {text}h or {text}d")
    if not _DURATION.fullmatch(text):
        raise ValueError(
            f"{text!r} is no duration: write a number and s, m, h or d, such as 30s, 5m, 1h or 2d"
        )
    seconds = sum(float(number) * UNITS[unit] for number, unit in _PART.findall(text))
    if seconds > timedelta.max.total_seconds():
        raise ValueError(f"{text!r} must be shorter than {timedelta.max.days} days")
    return timedelta(seconds=seconds)


class Duration(click.ParamType):  # type: ignore[type-arg]  # click 8.1 has no arguments there
    """An option that is a duration; its value is in seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return *value* in seconds."""
        try:
            return parse_duration(value).total_seconds()
        except ValueError as error:
            self.fail(str(error), param, ctx)
