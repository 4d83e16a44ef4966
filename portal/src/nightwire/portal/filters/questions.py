"""What the pages tell of an owner's filters, by the code of `nightwire filter`."""

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

MOST_CUT = 500
"""Most alerts of an overflow that are told, the newest."""


@dataclass(frozen=True)
class Shown:
    """One version of a filter.

    Attributes:
        name: The filter's.
        version: Its number.
        versions: The numbers of all versions, the newest first.
        live: The number of the one that is; 0 for none.
        record: What the engine keeps of this one.
        says: Its description and its work, line by line.
    """

    name: str
    version: int
    versions: Sequence[int]
    live: int
    record: Mapping[str, Any]
    says: Sequence[str]

    @property
    def language(self) -> str:
        """``python`` or ``sql``."""
        return "python" if self.record["entry"] else "sql"

    def json(self) -> dict[str, Any]:
        """Return it for programs."""
        kept = {name: self.record[name] for name in ("survey", "cap", "choice", "source", "submitted")}
        own = {
            name: getattr(self, name) for name in ("name", "version", "versions", "live", "language", "says")
        }
        return {**own, **kept, "live": bool(self.live)}


def listed(bootstrap: str, owner: str) -> list[dict[str, Any]]:
    """Return an owner's filters as `nightwire filter list --json`, each with its last notice."""
    summaries = {key: summary_of(one) for key, one in take_snapshot(bootstrap, owner).records.items()}
    notices = last_notices(bootstrap, owner)
    return [
        listed_json(one, summaries) | {"notice": notices[name].text if name in notices else None}
        for one in listed_filters(bootstrap, owner)
        for name in [one.record["name"]]
    ]


def shown(bootstrap: str, owner: str, name: str, version: int = 0) -> Shown:
    """Return one version of a filter; 0 is the one that `nightwire filter show` shows.

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
    return Shown(name, number, numbers, known.live_version(owner, name), record, lines)


def told(bootstrap: str, owner: str, name: str) -> list[dict[str, Any]]:
    """Return the log of a filter, the newest entry first."""
    entries = reversed(filter_log(bootstrap, owner, name))
    return [{"time": f"{one.time:%Y-%m-%dT%H:%M:%SZ}", "kind": one.kind, "text": one.text} for one in entries]


@dataclass(frozen=True)
class Past:
    """How far a backfill is.

    Attributes:
        says: The engine's last word about it.
        runs: Whether it goes on.
    """

    says: str
    runs: bool


def past_of(log: Sequence[Mapping[str, Any]]) -> Past | None:
    """Return how far the last backfill in a log is, of which the newest entry comes first."""
    said = (one["text"] for one in log if one["kind"] == "notice")
    last = next((text for text in said if BACKFILL in text), None)
    return last and Past(last, not any(end in last for end in (BACKFILL_ENDED, BACKFILL_STOPPED)))


def cut_off(bootstrap: str, owner: str, name: str) -> list[dict[str, Any]]:
    """Return alerts that passed a filter and were cut off by its cap, the newest first."""
    found = read_overflow(bootstrap, owner, name)[-MOST_CUT:]
    return [{**one, "time": f"{one['time']:%Y-%m-%dT%H:%M:%SZ}"} for one in reversed(found)]


def differences(before: Shown, after: Shown) -> Iterator[str]:
    """Yield the lines of two versions that differ, each with what is around it, as `diff -u`."""
    old, new = (one.record["source"].splitlines() for one in (before, after))
    names = (f"version {before.version}", f"version {after.version}")
    yield from difflib.unified_diff(old, new, *names, lineterm="")
