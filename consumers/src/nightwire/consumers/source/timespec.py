"""Times as people write them: ``1h`` ago, ``2026-11-21T03:00``."""

from datetime import UTC, datetime, timedelta

from nightwire.core.cli import parse_duration


def parse_since(text: str) -> timedelta | datetime:
    """Return how long ago (``1h``) or when (ISO 8601; UTC without a zone) *text* means.

    Raises:
        ValueError: It is neither; the message says what to write.
    """
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError:
        return _ago(text)
    if text.strip().isdigit():  # fromisoformat takes 20261121, but nobody means 3600000 so
        return _ago(text)
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time


def milliseconds(since: timedelta | datetime, now: datetime) -> int:
    """Return *since* as Kafka counts time. [ms since 1970, UTC]

    Raises:
        ValueError: A time without a zone, which would be another one on each machine.
        TypeError: It is neither, a text for example.
    """
    if not isinstance(since, timedelta | datetime):
        raise TypeError(f"since={since!r}: write a timedelta, as timedelta(hours=1), or a datetime")
    if isinstance(since, datetime) and since.tzinfo is None:
        raise ValueError(f"since={since.isoformat()} has no time zone: add tzinfo=UTC")
    time = now - since if isinstance(since, timedelta) else since
    return max(0, int(time.timestamp() * 1000))


def _ago(text: str) -> timedelta:
    if not (duration := parse_duration(text)):
        raise ValueError(f"{text!r} must be longer than zero")
    return duration
