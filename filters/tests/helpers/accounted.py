"""What an engine accounted for, and the word that a visit is over."""

from collections import Counter
from typing import Any

from nightwire.core.accounting import Account, read_accounts
from nightwire.schemas import records

Site = Any


def accounted(site: Site, source: str) -> list[Account]:
    """Return the engine's accounts of one topic."""
    return [one for one in read_accounts(site.bootstrap) if one.stage == "filters" and one.source == source]


def judged(site: Site, source: str) -> int:
    """Return how many records of a topic are accounted for."""
    return sum(one.read for one in accounted(site, source))


def evaluated(site: Site, key: str, what: str = "evaluated") -> int:
    """Return how many alerts a filter has judged, in all lanes; or another of its counts."""
    found = (one.filters[key] for one in read_accounts(site.bootstrap) if key in one.filters)
    return sum(getattr(one, what) for one in found)


def close(site: Site, visit: int, topic: str) -> None:
    """Write that a visit of simulated alerts is closed."""
    ends = Counter[int]()
    for message in site.read(topic):
        ends[message.partition()] = max(ends[message.partition()], message.offset())
    record = {
        "survey": "sim", "visit": visit, "opened": 0, "closed": 1, "written": 20, "refused": 0,
        "partitions": [{"partition": part, "first": 0, "last": last} for part, last in ends.items()],
    }  # fmt: skip
    site.write("visits", {f"sim/{visit}".encode(): records.VISIT.encode(record)})
