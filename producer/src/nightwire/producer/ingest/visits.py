"""The visits of a mirrored stream, which announces no ends of visits.  Pure.

A visit's record is written in the transaction of the alerts that it counts; so after a restart the
records in `visits` are the counts.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from nightwire.producer.visits.counts import VisitCounts
from nightwire.schemas.records import VISIT

LATER_VISITS = 2
"""A visit is over when so many later ones have begun."""


@dataclass(frozen=True)
class OpenVisit:
    """A visit that is not over: its counts, when its last alert came [s, monotonic], its rank."""

    counts: VisitCounts
    seen: float
    rank: int


class MirroredVisits:
    """Knows which visits are open, and the counts of all.

    Args:
        survey: Name of the survey.
        records: The records of its visits in Kafka, encoded, by visit.
        quiet: A visit without alerts for so long is over. [s]
        now: Monotonic time. [s]
    """

    def __init__(self, survey: str, records: Mapping[int, bytes], *, quiet: float, now: float) -> None:
        self._survey, self._quiet = survey, quiet
        # encoded: a survey has hundreds of thousands of visits a year
        self._closed: dict[int, bytes] = {}
        self._open: dict[int, OpenVisit] = {}
        left: list[VisitCounts] = []
        for number, value in records.items():
            if VISIT.decode(value)["closed"] is None:
                left.append(from_record(value))
            else:
                self._closed[number] = value
        for rank, counts in enumerate(sorted(left, key=lambda counts: counts.opened)):
            self._open[counts.visit] = OpenVisit(counts, now, rank)
        self._begun = len(left)

    @property
    def open(self) -> list[int]:
        """The visits that are not over, in the order of their beginning."""
        return list(self._open)

    def counts_by_visit(self, visits: Iterable[int], moment: datetime) -> dict[int, VisitCounts]:
        """Return a copy of each visit's counts; a new visit begins at *moment*, UTC."""
        return {number: self._copy(number, moment) for number in dict.fromkeys(visits)}

    def over(self, counted: Iterable[int], now: float) -> set[int]:
        """Return the visits that are over with *counted*; closed ones that grew are among them."""
        grew = list(counted)
        fresh = [number for number in grew if number not in self._open and number not in self._closed]
        ranks = {number: one.rank for number, one in self._open.items()}
        ranks |= {number: self._begun + rank for rank, number in enumerate(fresh)}
        latest = self._begun + len(fresh) - 1
        passed = {number for number, rank in ranks.items() if latest - rank >= LATER_VISITS}
        silent = {number for number, one in self._open.items() if now - one.seen >= self._quiet}
        return passed | (silent - set(grew)) | (self._closed.keys() & set(grew))

    def end(self) -> None:
        """Note that the stream has ended: all open visits are over."""
        self._quiet = float("-inf")

    def keep(self, counted: Mapping[int, VisitCounts], closed: Mapping[int, bytes], now: float) -> None:
        """Adopt the counts that Kafka has, and the records of *closed* visits."""
        for number, counts in counted.items():
            known = self._open.get(number)
            if known is not None:
                self._open[number] = replace(known, counts=counts, seen=now)
            elif number not in self._closed:
                self._open[number] = OpenVisit(counts, now, self._begun)
                self._begun += 1
        for number, record in closed.items():
            self._closed[number] = record
            self._open.pop(number, None)

    def _copy(self, number: int, moment: datetime) -> VisitCounts:
        if number in self._closed:
            return from_record(self._closed[number])
        if (known := self._open.get(number)) is None:
            return VisitCounts(self._survey, number, moment, estimated=True)
        return replace(known.counts, ranges=dict(known.counts.ranges))


def from_record(value: bytes) -> VisitCounts:
    """Return the counts in a record of `visits`, which are estimated from now on."""
    record = VISIT.decode(value)
    return VisitCounts(
        record["survey"],
        record["visit"],
        record["opened"],
        estimated=True,
        offered=record["written"],
        acknowledged=record["written"],
        ranges={one["partition"]: (one["first"], one["last"]) for one in record["partitions"]},
    )
