"""What workers tell the driver: rows, one per alert that passed, per record that is none, per range.  Pure.

What passed is a row with the numbers of the filters (their places in the filter set) and their ranks, so
a thousand filters that pass a hundred alerts each cost no text.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import reduce
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from nightwire.filters.model.offsets import OffsetRange

PASSED, DEAD, RANGE, ADDED = "passed", "dead", "range", "added"
"""Kinds of rows: an alert that passed, a record that could not be read, the counts of a range, and what a
transform adds to an alert."""

BACKFILL = "backfill"
"""The detail of an alert that passed, where it came as a copy that some filter's backfill sent."""

COLUMNS = pa.schema(
    [
        ("kind", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.int64()),
        ("visit", pa.int64()),
        ("alert", pa.string()),
        ("filters", pa.list_(pa.field("element", pa.int32()))),
        ("ranks", pa.list_(pa.field("element", pa.float64()))),
        ("detail", pa.string()),
        ("survey", pa.string()),
    ]
)
DDL = (
    "kind string, topic string, partition int, offset bigint, timestamp bigint, visit bigint, alert string, "
    "filters array<int>, ranks array<double>, detail string, survey string"
)
"""The same for Spark."""

Row = tuple[Any, ...]


class PassedAlert(NamedTuple):
    """An alert that passed a filter: where it lies, when Kafka took it [ms], and what it is.

    *named* is the survey that its headers name, where its topic names none.  *past* says that it is of a
    backfill, this filter's or one of those that it passed before: it takes no place.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    visit: int | None
    alert: str
    named: str = ""
    past: bool = False

    @property
    def survey(self) -> str:
        """Its survey."""
        return self.named or self.topic.partition(".")[2]

    @property
    def turn(self) -> tuple[int, str, int, int]:
        """Sorts hits: by Kafka's timestamp, then by place."""
        return (self.timestamp, self.topic, self.partition, self.offset)


class Fault(NamedTuple):
    """A filter's first fault in a range, and the id of the alert on which it happened."""

    text: str
    alert: str | None = None


@dataclass(frozen=True, order=True)
class UndecodableRecord:
    """One record that could not be read as an alert."""

    topic: str
    partition: int
    offset: int
    reason: str


@dataclass(frozen=True)
class RangeCounts:
    """What became of one range.

    Attributes:
        range: Which.
        read: Records read.
        dead: Of these, undecodable.
        gone: Offsets that had expired.
        hits: Alerts that passed at least one filter.
        judges: The filters that judged it, by number; then for each of them:
        evaluated: alerts judged,
        passed: of these passed,
        faulted: and those on which it failed.
        faults: Its first fault, by number.
        late: Filters that had no time left, by number.
        cost: CPU time that each of *judges* took. [µs]
        stopped: How many alerts of a sample each condition of a filter stopped, by the filter's number.
    """

    range: OffsetRange
    read: int
    dead: int = 0
    gone: int = 0
    hits: int = 0
    judges: Sequence[int] = ()
    evaluated: Sequence[int] = ()
    passed: Sequence[int] = ()
    faulted: Sequence[int] = ()
    faults: Mapping[int, Fault] = field(default_factory=dict)
    late: Sequence[int] = ()
    cost: Sequence[int] = ()
    stopped: Mapping[int, Mapping[str, int]] = field(default_factory=dict)

    def row(self) -> Row:
        """Return it as a row."""
        one, detail = self.range, asdict(self)
        detail["range"] = [one.first, one.end]
        return (RANGE, one.topic, one.partition, one.first, *[None] * 5, json.dumps(detail), None)


@dataclass(frozen=True)
class JudgedBatch:
    """All that the workers said of a batch.

    Attributes:
        hits: Alerts that passed something, in order of place.
        hit: For each pass, its alert: an index into *hits*.  Shape (n,), as the next two.
        judge: For each pass, its filter's number.
        rank: For each pass, the filter's rank; NaN where it gave none.
        dead: Records that could not be read, in order.
        counts: For each range, in order.
        added: What transforms add, as JSON, by the alert's place and the filter's number.
    """

    hits: Sequence[PassedAlert]
    hit: "np.ndarray[Any, Any]"
    judge: "np.ndarray[Any, Any]"
    rank: "np.ndarray[Any, Any]"
    dead: Sequence[UndecodableRecord] = ()
    counts: Sequence[RangeCounts] = ()
    added: Mapping[tuple[str, int, int, int], str] = field(default_factory=dict)


def load_counts(topic: str, partition: int, detail: Mapping[str, Any]) -> RangeCounts:
    """Return the counts that JSON made of `RangeCounts` holds."""
    first, end = detail["range"]
    faults = {int(number): Fault(*fault) for number, fault in detail["faults"].items()}
    stopped = {int(number): some for number, some in detail.get("stopped", {}).items()}
    own = {"range": OffsetRange(topic, partition, first, end), "faults": faults, "stopped": stopped}
    return RangeCounts(**{**detail, **own})


def rows_to_arrow(rows: Sequence[Row]) -> pa.RecordBatch:
    """Return *rows* as Arrow has them."""
    columns = zip(*rows, strict=True) if rows else [()] * len(COLUMNS)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, COLUMNS.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=COLUMNS)


def judged_batch(table: pa.Table) -> JudgedBatch:
    """Return what *table*, of `COLUMNS`, says; the same however the work was shared out."""
    kinds = np.array(table["kind"].to_pylist(), object)
    passed = table.filter(pa.array(kinds == PASSED))
    others = table.filter(pa.array(kinds != PASSED)).to_pylist()
    dead = sorted(_undecodable(row) for row in others if row["kind"] == DEAD)
    counts = merge_counts(_counts(row) for row in others if row["kind"] == RANGE)
    hits = _passed_alerts(passed)
    judge, rank = (_flat(passed[name]) for name in ("filters", "ranks"))
    places = np.argsort(sorted(range(len(hits)), key=lambda at: hits[at][:3]))
    hit = places.astype(np.int64).repeat(_lengths(passed["filters"]))
    order = np.lexsort((judge, hit))
    added = {_key_of_added(row): row["detail"] for row in others if row["kind"] == ADDED}
    ordered = sorted(hits, key=lambda one: one[:3])
    return JudgedBatch(ordered, hit[order], judge[order], rank[order], dead, counts, added)


def merge_counts(counts: Iterable[RangeCounts]) -> list[RangeCounts]:
    """Return *counts* in order, one of each range: a range may hold alerts of several surveys."""
    by_range = sorted(counts, key=lambda one: one.range)
    return [reduce(_add, some) for _, some in groupby(by_range, key=lambda one: one.range)]


def _add(one: RangeCounts, other: RangeCounts) -> RangeCounts:
    """Return the counts of a range of which each has seen other records."""
    judges = sorted({*one.judges, *other.judges})
    sums: dict[str, Any] = {
        name: _by_judge(judges, *((some.judges, getattr(some, name)) for some in (one, other)))
        for name in ("evaluated", "passed", "faulted", "cost")
    }
    sums |= {name: getattr(one, name) + getattr(other, name) for name in ("read", "dead", "gone", "hits")}
    sums |= {name: {**getattr(other, name), **getattr(one, name)} for name in ("faults", "stopped")}
    return RangeCounts(one.range, judges=judges, late=sorted({*one.late, *other.late}), **sums)


def _by_judge(judges: Sequence[int], *some: tuple[Sequence[int], Sequence[int]]) -> list[int]:
    sums = dict.fromkeys(judges, 0)
    for numbers, values in some:
        for judge, value in zip(numbers, values, strict=True):
            sums[judge] += value
    return [sums[judge] for judge in judges]


def _passed_alerts(passed: pa.Table) -> list[PassedAlert]:
    known = [passed[name].to_pylist() for name in PassedAlert._fields[:-2]]
    named = [name or "" for name in passed["survey"].to_pylist()]
    past = [detail == BACKFILL for detail in passed["detail"].to_pylist()]
    return list(map(PassedAlert._make, zip(*known, named, past, strict=True)))


def _lengths(lists: Any) -> "np.ndarray[Any, Any]":
    return np.array(lists.combine_chunks().value_lengths(), np.int64)


def _flat(lists: Any) -> "np.ndarray[Any, Any]":
    return np.asarray(lists.combine_chunks().flatten())


def _key_of_added(row: Mapping[str, Any]) -> tuple[str, int, int, int]:
    (judge,) = row["filters"]
    return row["topic"], row["partition"], row["offset"], judge


def _undecodable(row: Mapping[str, Any]) -> UndecodableRecord:
    return UndecodableRecord(row["topic"], row["partition"], row["offset"], row["detail"])


def _counts(row: Mapping[str, Any]) -> RangeCounts:
    return load_counts(row["topic"], row["partition"], json.loads(row["detail"]))


@dataclass(frozen=True)
class Pass:
    """An alert passed this filter; *rank* is the number it returned, where it returned one.

    *again* says that the visit has had a copy of the same alert before, *added* what a transform computed,
    as JSON.
    """

    key: str
    version: int
    rank: float | None = None
    again: bool = False
    added: str = ""
