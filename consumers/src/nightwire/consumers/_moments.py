"""Moments and durations as people write them: ``30s``, ``1h30m``, ``2026-11-21T03:00``."""

import re
from datetime import UTC, datetime, timedelta

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
"""Length of each unit. [s]"""

_PART = re.compile(r"(\d+(?:\.\d+)?)([smhd])")
_DURATION = re.compile(rf"(?:{_PART.pattern})+")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def parse_duration(text: str) -> timedelta:
    """Return the duration that *text* spells, such as ``30s``, ``5m``, ``1h30m`` or ``2d``.

    Raises:
        ValueError: It spells none, or zero; the message says what to write.
    """
    text = text.strip()
    if _NUMBER.fullmatch(text):
        raise ValueError(f"{text!r} has no unit: write {text}s, {text}m, {text}h or {text}d")
    if not _DURATION.fullmatch(text):
        raise ValueError(
            f"{text!r} is no duration: write a number and s, m, h or d, such as 30s, 5m, 1h or 2d"
        )
    seconds = sum(float(number) * UNITS[unit] for number, unit in _PART.findall(text))
    if not 0 < seconds <= timedelta.max.total_seconds():
        raise ValueError(f"{text!r} must be longer than zero and shorter than {timedelta.max.days} days")
    return timedelta(seconds=seconds)


def parse_since(text: str) -> timedelta | datetime:
    """Return how long ago (``1h``) or when (ISO 8601, UTC unless it says otherwise) *text* means.

    Raises:
        ValueError: It is neither; the message says what to write.
    """
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return parse_duration(text)
    if text.strip().isdigit():  # fromisoformat takes 20261121, but nobody means 3600000 so
        return parse_duration(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def milliseconds(since: timedelta | datetime, now: datetime) -> int:
    """Return *since* as Kafka counts time. [ms since 1970, UTC]

    Raises:
        ValueError: A time without a zone, which would mean another moment on each machine.
    """
    if isinstance(since, datetime) and since.tzinfo is None:
        raise ValueError(f"since={since.isoformat()} has no time zone: add tzinfo=UTC")
    moment = now - since if isinstance(since, timedelta) else since
    return max(0, int(moment.timestamp() * 1000))
