"""What is decided for a batch, before anything of it is sent.  Pure.

A re-run after a crash reads the decision and sends the same alerts again, never others.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from nightwire.core.accounts import Account, FilterClasses
from nightwire.filters._judge import Pass
from nightwire.filters._offsets import Range

STAGE = "filters"
REJECTED = "no-filter-passed"
EXPIRED = "expired"
"""Reasons for which a record went nowhere: nobody wanted it; retention deleted it before we read it."""


@dataclass(frozen=True, order=True)
class Pick:
    """One alert that goes to the topics of the filters it passed."""

    topic: str
    partition: int
    offset: int
    visit: int | None = field(compare=False)
    alert: str = field(compare=False)
    passes: tuple[Pass, ...] = field(compare=False)


@dataclass(frozen=True, order=True)
class Dead:
    """One record that could not be read as an alert."""

    topic: str
    partition: int
    offset: int
    reason: str


@dataclass(frozen=True)
class Counts:
    """What became of one range: records read, undecodable and expired; per filter its `Tally`, as JSON."""

    range: Range
    read: int
    dead: int
    gone: int
    filters: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Decision:
    """All that a batch will do to the outside."""

    filters: int
    picks: Sequence[Pick] = ()
    dead: Sequence[Dead] = ()
    counts: Sequence[Counts] = ()


def choose(picks: Iterable[Pick]) -> list[Pick]:
    """Return which of *picks* are sent, in order of their offsets.

    All of them: a limit per visit and filter belongs here, with what it has counted so far as a second
    argument.
    """
    return sorted(picks)


def decide(rows: Iterable[Mapping[str, Any]]) -> Decision:
    """Return the decision for the *rows* that the workers gave."""
    picks, dead, counts, filters = list[Pick](), list[Dead](), list[Counts](), 0
    for row in rows:
        spot = (row["topic"], row["partition"], row["offset"])
        if row["kind"] == "passed":
            passes = tuple(Pass(*one) for one in json.loads(row["detail"]))
            picks.append(Pick(*spot, row["visit"], row["alert"], passes))
        elif row["kind"] == "dead":
            dead.append(Dead(*spot, row["detail"]))
        else:
            said = json.loads(row["detail"])
            filters = said["set"]
            found = Range(*spot, said["end"])
            counts.append(Counts(found, said["read"], said["dead"], said["gone"], said["filters"]))
    counts.sort(key=lambda one: one.range)
    return Decision(filters, choose(picks), sorted(dead), counts)


def accounts(decision: Decision, lost: Iterable[tuple[str, int]] = ()) -> list[Account]:
    """Return the account of each range.

    Args:
        decision: What was done.
        lost: (topic, partition) of each pick that expired between the decision and its sending.
    """
    sent: dict[tuple[str, int], int] = {}
    for pick in decision.picks:
        sent[pick.topic, pick.partition] = sent.get((pick.topic, pick.partition), 0) + 1
    missing: dict[tuple[str, int], int] = {}
    for spot in lost:
        missing[spot] = missing.get(spot, 0) + 1
    spots = [(one, (one.range.topic, one.range.partition)) for one in decision.counts]
    return [_account(one, sent.get(spot, 0), missing.get(spot, 0)) for one, spot in spots]


def _account(one: Counts, picked: int, lost: int) -> Account:
    rejected = {REJECTED: one.read - one.dead - picked, EXPIRED: one.gone + lost}
    return Account(
        stage=STAGE,
        source=one.range.topic,
        partition=one.range.partition,
        first=one.range.first,
        last=one.range.end - 1,
        read=one.read + one.gone,
        delivered=picked - lost,
        rejected={reason: count for reason, count in rejected.items() if count},
        dead_lettered=one.dead,
        filters={key: _classes(tally) for key, tally in one.filters.items()},
    )


def _classes(tally: Mapping[str, Any]) -> FilterClasses:
    return FilterClasses(**{name: tally[name] for name in ("evaluated", "passed", "rejected", "faulted")})


def headers(pick: Pick, one: Pass) -> list[tuple[str, bytes]]:
    """Return the headers of *pick*'s copy for the filter that it passed; all are text."""
    values = {
        "filter": one.key,
        "version": one.version,
        "visit": "" if pick.visit is None else pick.visit,
        "rank": "" if one.rank is None else repr(one.rank),
        "survey": pick.topic.partition(".")[2],
        "alert": pick.alert,
        "topic": pick.topic,
        "partition": pick.partition,
        "offset": pick.offset,
    }
    return [(name, str(value).encode()) for name, value in values.items()]


def dump(decision: Decision) -> str:
    """Return *decision* as JSON."""
    return json.dumps(asdict(decision))


def load(text: str) -> Decision:
    """Return the decision in what `dump` made."""
    said = json.loads(text)
    picks = [
        Pick(**{**one, "passes": tuple(Pass(**passed) for passed in one["passes"])}) for one in said["picks"]
    ]
    counts = [Counts(**{**one, "range": Range(**one["range"])}) for one in said["counts"]]
    return Decision(said["filters"], picks, [Dead(**one) for one in said["dead"]], counts)
