"""The rows that workers send to the driver, and the judged batch made of them.  Pure.

There is a row for each alert that passed, for each record that is no alert, and for each range that
was read. An alert's row has the numbers of its filters (their indices in the filter set) and their
ranks, so a thousand filters that pass a hundred alerts each cost no text.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from nightwire.filters.model.offsets import OffsetRange, RecordPosition

PASSED, DEAD, RANGE, ADDED = "passed", "dead", "range", "added"
"""Kinds of rows: an alert that passed, a record that could not be read, the counts of a range, and
what a transform adds to an alert."""

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

Row = tuple[Any, ...]


class PassedAlert(NamedTuple):
    """An alert that passed a filter: where it lies, when Kafka took it [ms], its visit, and its id.

    *survey_header* is the survey that its headers name, where its topic names none.  *backfilled*
    says that it is of a backfill, this filter's or one of those that it passed before: no quota
    counts it.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    visit: int | None
    alert: str
    survey_header: str = ""
    backfilled: bool = False

    @property
    def survey(self) -> str:
        """Its survey."""
        return self.survey_header or self.topic.partition(".")[2]

    @property
    def position(self) -> RecordPosition:
        """Its topic, partition and offset."""
        return self[:3]

    @property
    def order_key(self) -> tuple[int, str, int, int]:
        """Sorts alerts: by Kafka's timestamp, then by position."""
        return (self.timestamp, self.topic, self.partition, self.offset)


@dataclass(frozen=True)
class Pass:
    """An alert passed this filter; *rank* is the number that it returned, where it returned one.

    *again* says that the visit has had a copy of the same alert before, *added* what a transform
    computed, as JSON.
    """

    key: str
    version: int
    rank: float | None = None
    again: bool = False
    added: str = ""


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


WRITTEN_NAMES = {
    "undecodable": "dead", "expired": "gone", "passed_alerts": "hits", "filters": "judges", "cpu_us": "cost",
}  # fmt: skip
"""What some counts are called in rows and on the disk, where names are older than in the code."""


@dataclass(frozen=True)
class RangeCounts:
    """The counts of one range.

    Attributes:
        range: Which.
        read: Records read.
        undecodable: Of these, so many are no alerts.
        expired: Offsets that retention had deleted.
        passed_alerts: Alerts that passed at least one filter.
        filters: The filters that judged it, by number; then for each of them:
        evaluated: alerts judged,
        passed: of these passed,
        faulted: and those on which it failed.
        faults: Its first fault, by number.
        late: Filters that had no time left, by number.
        cpu_us: CPU time that each of *filters* took. [µs]
        stopped: How many alerts of a sample each condition of a filter stopped, by the filter's
            number.
        unjudged: Offsets that were left out, for they were too old for their lane.
        read_us: Time of reading, and
        decode_us: of decoding. [µs]
    """

    range: OffsetRange
    read: int
    undecodable: int = 0
    expired: int = 0
    passed_alerts: int = 0
    filters: Sequence[int] = ()
    evaluated: Sequence[int] = ()
    passed: Sequence[int] = ()
    faulted: Sequence[int] = ()
    faults: Mapping[int, Fault] = field(default_factory=dict)
    late: Sequence[int] = ()
    cpu_us: Sequence[int] = ()
    stopped: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    unjudged: int = 0
    read_us: int = 0
    decode_us: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        values = {WRITTEN_NAMES.get(name, name): value for name, value in vars(self).items()}
        return {**values, "range": [self.range.first, self.range.end]}

    def row(self) -> Row:
        """Return it as a row."""
        one = self.range
        return (RANGE, one.topic, one.partition, one.first, *[None] * 5, json.dumps(self.as_json()), None)


def load_counts(topic: str, partition: int, values: Mapping[str, Any]) -> RangeCounts:
    """Return the counts of a result of `RangeCounts.as_json`."""
    first, end = values["range"]
    numbers = {name: values[written] for name, written in WRITTEN_NAMES.items() if written in values}
    rest = {name: value for name, value in values.items() if name not in WRITTEN_NAMES.values()}
    about: dict[str, Any] = {
        "range": OffsetRange(topic, partition, first, end),
        "faults": {int(number): Fault(*fault) for number, fault in values["faults"].items()},
        "stopped": {int(number): some for number, some in values.get("stopped", {}).items()},
    }
    return RangeCounts(**{**rest, **numbers, **about})


@dataclass(frozen=True)
class JudgedBatch:
    """All that the workers found in a batch.

    Attributes:
        alerts: Those that passed something, in order of position.
        alert_index: For each pass, its alert: an index into *alerts*.  Shape (n,), as the next two.
        filter_index: For each pass, its filter's number.
        rank: For each pass, the filter's rank; NaN where it gave none.
        undecodable: Records that could not be read, in order.
        counts: For each range, in order.
        added: What transforms add, as JSON, by the alert's position and the filter's number.
    """

    alerts: Sequence[PassedAlert]
    alert_index: "np.ndarray[Any, Any]"
    filter_index: "np.ndarray[Any, Any]"
    rank: "np.ndarray[Any, Any]"
    undecodable: Sequence[UndecodableRecord] = ()
    counts: Sequence[RangeCounts] = ()
    added: Mapping[tuple[str, int, int, int], str] = field(default_factory=dict)


def without_undecodable(judged: JudgedBatch) -> JudgedBatch:
    """Return a batch without the records that are no alerts: they are the quick lane's."""
    counts = [replace(one, read=one.read - one.undecodable, undecodable=0) for one in judged.counts]
    return replace(judged, undecodable=(), counts=counts)


def rows_to_arrow(rows: Sequence[Row]) -> pa.RecordBatch:
    """Return *rows* as Arrow has them."""
    columns = zip(*rows, strict=True) if rows else [()] * len(COLUMNS)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, COLUMNS.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=COLUMNS)


def judged_batch(table: pa.Table) -> JudgedBatch:
    """Return the judged batch in the rows of *table*, which has the columns `COLUMNS`.

    It is the same however the work was shared out.
    """
    kinds = np.array(table["kind"].to_pylist(), object)
    passed = table.filter(pa.array(kinds == PASSED))
    others = table.filter(pa.array(kinds != PASSED)).to_pylist()
    undecodable = sorted(_undecodable(row) for row in others if row["kind"] == DEAD)
    counts = merge_counts(_counts(row) for row in others if row["kind"] == RANGE)
    added = {_added_key(row): row["detail"] for row in others if row["kind"] == ADDED}
    alerts = _passed_alerts(passed)
    number, rank = (_flat(passed[name]) for name in ("filters", "ranks"))
    by_position = sorted(range(len(alerts)), key=lambda at: alerts[at][:3])
    alert = np.argsort(by_position).astype(np.int64).repeat(_lengths(passed["filters"]))
    order = np.lexsort((number, alert))
    ordered = [alerts[at] for at in by_position]
    return JudgedBatch(ordered, alert[order], number[order], rank[order], undecodable, counts, added)


def merge_counts(counts: Iterable[RangeCounts]) -> list[RangeCounts]:
    """Return *counts* in order, one of each range: a range may hold alerts of several surveys."""
    by_range = sorted(counts, key=lambda one: one.range)
    return [reduce(_add, some) for _, some in groupby(by_range, key=lambda one: one.range)]


def _add(one: RangeCounts, other: RangeCounts) -> RangeCounts:
    """Return the counts of a range of which each has seen other records."""
    filters = sorted({*one.filters, *other.filters})
    per_filter: dict[str, Any] = {
        name: _by_filter(filters, *((some.filters, getattr(some, name)) for some in (one, other)))
        for name in ("evaluated", "passed", "faulted", "cpu_us")
    }
    sums: dict[str, Any] = {
        name: getattr(one, name) + getattr(other, name)
        for name in ("read", "undecodable", "expired", "passed_alerts", "unjudged", "read_us", "decode_us")
    }
    first: dict[str, Any] = {
        name: {**getattr(other, name), **getattr(one, name)} for name in ("faults", "stopped")
    }
    late = sorted({*one.late, *other.late})
    return RangeCounts(one.range, filters=filters, late=late, **per_filter, **sums, **first)


def _by_filter(filters: Sequence[int], *some: tuple[Sequence[int], Sequence[int]]) -> list[int]:
    sums = dict.fromkeys(filters, 0)
    for numbers, values in some:
        for number, value in zip(numbers, values, strict=True):
            sums[number] += value
    return [sums[number] for number in filters]


def _passed_alerts(passed: pa.Table) -> list[PassedAlert]:
    known = [passed[name].to_pylist() for name in PassedAlert._fields[:-2]]
    surveys = [name or "" for name in passed["survey"].to_pylist()]
    backfilled = [detail == BACKFILL for detail in passed["detail"].to_pylist()]
    return list(map(PassedAlert._make, zip(*known, surveys, backfilled, strict=True)))


def _lengths(lists: Any) -> "np.ndarray[Any, Any]":
    return np.array(lists.combine_chunks().value_lengths(), np.int64)


def _flat(lists: Any) -> "np.ndarray[Any, Any]":
    return np.asarray(lists.combine_chunks().flatten())


def _added_key(row: Mapping[str, Any]) -> tuple[str, int, int, int]:
    (number,) = row["filters"]
    return row["topic"], row["partition"], row["offset"], number


def _undecodable(row: Mapping[str, Any]) -> UndecodableRecord:
    return UndecodableRecord(row["topic"], row["partition"], row["offset"], row["detail"])


def _counts(row: Mapping[str, Any]) -> RangeCounts:
    return load_counts(row["topic"], row["partition"], json.loads(row["detail"]))
