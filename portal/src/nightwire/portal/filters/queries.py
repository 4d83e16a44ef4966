"""Queries for an owner's filters: list, versions, log, backfill, overflow."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from nightwire.filters.authoring import BACKFILL, BACKFILL_ENDED, BACKFILL_STOPPED
from nightwire.filters.cli import (
    filter_log,
    last_notices,
    listed_filters,
    listed_json,
    read_filters,
    shown_version,
    summary_lines,
    summary_of,
    take_snapshot,
    version_lines,
)
from nightwire.filters.delivery import read_overflow
from nightwire.schemas.serving import RefusedError

MAX_OVERFLOW = 500
"""Newest alerts of an overflow that are returned."""


@dataclass(frozen=True)
class ShownVersion:
    """One version of a filter.

    Attributes:
        name: The filter's.
        version: Its number.
        versions: The numbers of all versions, the newest first.
        live: The number of the live version; 0 for none.
        record: The engine's record of this version.
        lines: Its description and statistics.
    """

    name: str
    version: int
    versions: Sequence[int]
    live: int
    record: Mapping[str, Any]
    lines: Sequence[str]

    @property
    def language(self) -> str:
        """``python`` or ``sql``."""
        return "python" if self.record["entry"] else "sql"

    def json(self) -> dict[str, Any]:
        """Return the API's JSON."""
        recorded = {name: self.record[name] for name in ("survey", "cap", "choice", "source", "submitted")}
        own = {name: getattr(self, name) for name in ("name", "version", "versions", "language")}
        return {**own, **recorded, "says": self.lines, "live": bool(self.live)}


def list_filters(bootstrap: str, owner: str) -> list[dict[str, Any]]:
    """Return an owner's filters as `nightwire filter list --json`, each with its last notice."""
    summaries = {key: summary_of(one) for key, one in take_snapshot(bootstrap, owner).records.items()}
    notices = last_notices(bootstrap, owner)
    return [
        listed_json(one, summaries) | {"notice": notices[name].text if name in notices else None}
        for one in listed_filters(bootstrap, owner)
        for name in [one.record["name"]]
    ]


def show_version(bootstrap: str, owner: str, name: str, version: int = 0) -> ShownVersion:
    """Return one version of a filter; 0: the one of `nightwire filter show`.

    Raises:
        RefusedError: 404: there is none.
    """
    known = read_filters(bootstrap)
    number = version or shown_version(known, owner, name)
    if (record := known.versions.get((owner, name, number))) is None:
        raise RefusedError(404, f"you have no filter {name[:40]}{f' version {version}' if version else ''}")
    stats = take_snapshot(bootstrap, owner).records.get(f"{owner}/{name}")
    work = stats if stats and stats["version"] == number else None
    lines = [
        *version_lines(known, record),
        *(summary_lines(summary_of(work), datetime.now(UTC)) if work else ()),
    ]
    numbers = sorted((one for who, what, one in known.versions if (who, what) == (owner, name)), reverse=True)
    return ShownVersion(name, number, numbers, known.live_version(owner, name), record, lines)


def read_log(bootstrap: str, owner: str, name: str) -> list[dict[str, Any]]:
    """Return a filter's log, newest entry first."""
    entries = reversed(filter_log(bootstrap, owner, name))
    return [{"time": f"{one.time:%Y-%m-%dT%H:%M:%SZ}", "kind": one.kind, "text": one.text} for one in entries]


@dataclass(frozen=True)
class BackfillStatus:
    """The status of a backfill.

    Attributes:
        notice: The engine's last notice about it.
        runs: Whether it has not ended.
    """

    notice: str
    runs: bool


def backfill_status(log: Sequence[Mapping[str, Any]]) -> BackfillStatus | None:
    """Return the status of the last backfill in a filter's log, newest entry first."""
    notices = (one["text"] for one in log if one["kind"] == "notice")
    last = next((text for text in notices if BACKFILL in text), None)
    return last and BackfillStatus(last, not any(end in last for end in (BACKFILL_ENDED, BACKFILL_STOPPED)))


def overflow(bootstrap: str, owner: str, name: str) -> list[dict[str, Any]]:
    """Return alerts that passed a filter and exceeded its cap, newest first."""
    found = read_overflow(bootstrap, owner, name)[-MAX_OVERFLOW:]
    return [{**one, "time": f"{one['time']:%Y-%m-%dT%H:%M:%SZ}"} for one in reversed(found)]


def diff(before: ShownVersion, after: ShownVersion) -> Iterator[str]:
    """Yield the differences of two versions' texts, as `diff -u`."""
    old, new = (one.record["source"].splitlines() for one in (before, after))
    names = (f"version {before.version}", f"version {after.version}")
    yield from difflib.unified_diff(old, new, *names, lineterm="")
