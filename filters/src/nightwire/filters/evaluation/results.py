"""The verdicts of filters on many alerts, as arrays, and the rows made of them.  Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from nightwire.filters.model.messages import ADDED, BACKFILL, COLUMNS, PASSED, Fault, RangeCounts, Row
from nightwire.filters.reading.alerts import AlertIdentities, RangeRows

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Verdict:
    """The verdict of one filter on n alerts.

    Attributes:
        number: The filter's.
        passed: Rows that passed, ascending.  Shape (p,).
        rank: Their ranks, NaN where there is none.  Shape (p,).
        faults: What went wrong, by row.
        evaluated: Rows before this one have a verdict or a fault; the others were not looked at.
        late: It had no time for those.
        fault: What went wrong with all rows that were not looked at.
        cpu_s: CPU time that it took. [s]
        added: What a transform adds, by row, as JSON.
        stopped: How many alerts of a sample each of its conditions stopped.
    """

    number: int
    passed: Array = field(default_factory=lambda: np.empty(0, np.int64))
    rank: Array = field(default_factory=lambda: np.empty(0, np.float64))
    faults: Mapping[int, str] = field(default_factory=dict)
    evaluated: int | None = None
    late: bool = False
    fault: str | None = None
    cpu_s: float = 0.0
    added: Mapping[int, str] = field(default_factory=dict)
    stopped: Mapping[str, int] = field(default_factory=dict)

    def asks(self, text: str) -> bool:
        """Return whether one of its faults says *text*."""
        return any(text in one for one in self.faults.values())


def passed_rows(
    verdicts: Sequence[Verdict],
    identities: AlertIdentities,
    survey: str | None = None,
    *,
    backfilled: bool = False,
) -> pa.RecordBatch:
    """Return a row for each alert that passed something, with the numbers of its filters and their
    ranks.

    Args:
        verdicts: Of the filters.
        identities: Of the alerts.
        survey: Theirs, where their topic does not tell.
        backfilled: Whether they came as copies that backfills sent.
    """
    row = _joined([one.passed for one in verdicts], np.int64)
    lengths = [len(one.passed) for one in verdicts]
    number = np.repeat([one.number for one in verdicts], lengths).astype(np.int32)
    rank = _joined([one.rank for one in verdicts], np.float64)
    order = np.argsort(row, kind="stable")
    rows, first = np.unique(row[order], return_index=True)
    offsets = pa.array(np.append(first, len(row)).astype(np.int32))
    lists = [pa.ListArray.from_arrays(offsets, pa.array(values[order])) for values in (number, rank)]
    chosen = rows.tolist()
    columns = {
        "kind": [PASSED] * len(chosen),
        **{name: [values[at] for at in chosen] for name, values in vars(identities).items()},
        "filters": lists[0],
        "ranks": lists[1],
        "detail": [BACKFILL if backfilled else None] * len(chosen),
        "survey": [survey] * len(chosen),
    }
    arrays = [_array(columns[one.name], one.type) for one in COLUMNS]
    return pa.RecordBatch.from_arrays(arrays, schema=COLUMNS)


def added_rows(verdicts: Iterable[Verdict], identities: AlertIdentities) -> list[Row]:
    """Return a row for each alert and each transform that adds something to it."""
    return [
        (ADDED, *_position(identities, row), None, None, None, [one.number], None, text, None)
        for one in verdicts
        for row, text in one.added.items()
    ]


def _position(identities: AlertIdentities, row: int) -> tuple[str, int, int]:
    return identities.topic[row], identities.partition[row], identities.offset[row]


def at_rows(verdict: Verdict, rows: Any) -> Verdict:
    """Return a verdict on some alerts as one on all: row i of it is row ``rows[i]``."""
    faults = {int(rows[row]): text for row, text in verdict.faults.items()}
    if verdict.evaluated is not None:
        faults |= {int(row): verdict.fault or "" for row in rows[verdict.evaluated :]}
    added = {int(rows[row]): text for row, text in verdict.added.items()}
    return replace(verdict, passed=rows[verdict.passed], faults=faults, added=added, evaluated=None)


def count_range(rows: RangeRows, verdicts: Sequence[Verdict], ids: Sequence[str]) -> RangeCounts:
    """Return the counts of one range.

    Args:
        rows: The range.
        verdicts: Of all rows.
        ids: The alerts' ids, by row.
    """
    first, end = rows.first, rows.end
    inside = [_inside(one, first, end) for one in verdicts]
    passed = _joined([one.passed[part] for one, part in zip(verdicts, inside, strict=True)], np.int64)
    return RangeCounts(
        rows.range,
        rows.read,
        rows.undecodable,
        rows.expired,
        passed_alerts=len(np.unique(passed)),
        filters=[one.number for one in verdicts],
        evaluated=[end - first] * len(verdicts),
        passed=[part.stop - part.start for part in inside],
        faulted=[_faulted(one, first, end) for one in verdicts],
        faults=dict(_first_faults(verdicts, first, end, ids)),
        late=[one.number for one in verdicts if one.late and _stopped(one, first, end)],
        cpu_us=[round(1e6 * one.cpu_s * (end - first) / max(1, len(ids))) for one in verdicts],
        stopped={one.number: one.stopped for one in verdicts if one.stopped and first == 0 < end},
        read_us=rows.read_us,
        decode_us=rows.decode_us,
    )


def _inside(one: Verdict, first: int, end: int) -> slice:
    low, high = np.searchsorted(one.passed, [first, end]).tolist()
    return slice(low, high)


def _unseen(one: Verdict, first: int, end: int) -> int:
    return 0 if one.evaluated is None else max(0, end - max(first, one.evaluated))


def _stopped(one: Verdict, first: int, end: int) -> bool:
    """Return whether a filter that was stopped had not seen, or was at, one of these rows."""
    return bool(_unseen(one, first, end)) or first <= max(one.faults, default=-1) < end


def _faulted(one: Verdict, first: int, end: int) -> int:
    return sum(first <= row < end for row in one.faults) + _unseen(one, first, end)


def _first_faults(
    verdicts: Iterable[Verdict], first: int, end: int, ids: Sequence[str]
) -> Iterable[tuple[int, Fault]]:
    for one in verdicts:
        row = min((row for row in one.faults if first <= row < end), default=None)
        if row is not None:
            yield one.number, Fault(one.faults[row], ids[row])
        elif one.fault is not None and _unseen(one, first, end):
            yield one.number, Fault(one.fault)


def _joined(arrays: Sequence[Array], kind: Any) -> Array:
    return np.concatenate(arrays) if arrays else np.empty(0, kind)


def _array(values: Any, kind: Any) -> Any:
    return values.cast(kind) if isinstance(values, pa.Array) else pa.array(values, kind)
