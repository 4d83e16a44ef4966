"""Looking at filters at work: what the engine tells their owners, and which are live."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nightwire.filters._listing import filters
from nightwire.filters._publish import read_seen
from nightwire.filters._sight import Sight, sight


@dataclass(frozen=True)
class Look:
    """Filters at one moment.

    Attributes:
        records: The last record of each in `seen.<owner>`, by ``owner/name``.
        live: Those that are live; None where we may not read which are.
    """

    records: Mapping[str, Mapping[str, Any]]
    live: Sequence[str] | None = None


def look(bootstrap: str, owner: str | None) -> Look:
    """Return the filters of *owner* as they are now; without one, of everybody whose topics we may read.

    Raises:
        KafkaException: Kafka does not answer.
    """
    records = {f"{one['owner']}/{one['name']}": one for one in read_seen(bootstrap, owner)}
    known = filters(bootstrap)
    live = [one.key for one in known.live() if owner in (None, one.owner)]
    return Look(records, live if known.versions else None)


def sights(now: Look, before: Look | None = None) -> list[Sight]:
    """Return what was seen of the live filters since *before*; without it, since they began.  Pure."""
    keys = sorted(now.records) if now.live is None else now.live
    earlier = before.records if before else {}
    return [sight(now.records[key], earlier.get(key)) if key in now.records else Sight(key) for key in keys]
