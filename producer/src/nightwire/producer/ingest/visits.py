"""The visits of a mirrored stream, whose ends nobody announces.  Pure: the clock is an argument.

A visit's record is written in the transaction of the alerts that it counts; so after a restart the records
in `visits` are the counts, and nothing needs to be looked for.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from nightwire.producer.visits.counts import VisitCounts
from nightwire.schemas.records import VISIT

LATER = 2
"""So many later visits end one that has not been quiet yet."""


@dataclass(frozen=True)
class OpenVisit:
    """A visit that is not over: what was counted, when its last alert came [s, monotonic], its place."""

    ledger: VisitCounts
    seen: float
    place: int


class MirroredVisits:
    """Knows which visits are open, and what was counted of each that ever was.

    Args:
        survey: Name of the survey.
        records: The records of its visits in Kafka, encoded, by number.
        quiet: A visit without alerts for so long is over. [s]
        now: Monotonic time. [s]
    """

    def __init__(self, survey: str, records: Mapping[int, bytes], *, quiet: float, now: float) -> None:
        self._survey, self._quiet = survey, quiet
        self._closed: dict[int, bytes] = {}  # encoded: a survey has hundreds of thousands of visits a year
        self._open: dict[int, OpenVisit] = {}
        left: list[VisitCounts] = []
        for number, value in records.items():
            if VISIT.decode(value)["closed"] is None:
                left.append(from_record(value))
            else:
                self._closed[number] = value
        for place, ledger in enumerate(sorted(left, key=lambda ledger: ledger.opened)):
            self._open[ledger.visit] = OpenVisit(ledger, now, place)
        self._begun = len(left)

    @property
    def open(self) -> list[int]:
        """The visits that are not over, in the order of their beginning."""
        return list(self._open)

    def ledgers(self, visits: Iterable[int], moment: datetime) -> dict[int, VisitCounts]:
        """Return a copy of each visit's ledger to count in; a visit never seen begins at *moment*, UTC."""
        return {number: self._copy(number, moment) for number in dict.fromkeys(visits)}

    def over(self, counted: Iterable[int], now: float) -> set[int]:
        """Return which visits are over once those *counted* are kept; closed ones that grew are so still."""
        grew = list(counted)
        fresh = [number for number in grew if number not in self._open and number not in self._closed]
        places = {number: one.place for number, one in self._open.items()}
        places |= {number: self._begun + place for place, number in enumerate(fresh)}
        latest = self._begun + len(fresh) - 1
        passed = {number for number, place in places.items() if latest - place >= LATER}
        silent = {number for number, one in self._open.items() if now - one.seen >= self._quiet}
        return passed | (silent - set(grew)) | (self._closed.keys() & set(grew))

    def end(self) -> None:
        """Say that nothing more comes: all that is open is over."""
        self._quiet = float("-inf")

    def keep(self, counted: Mapping[int, VisitCounts], closed: Mapping[int, bytes], now: float) -> None:
        """Take over what was *counted* and is in Kafka, and the records of visits that are *closed*."""
        for number, ledger in counted.items():
            known = self._open.get(number)
            if known is not None:
                self._open[number] = replace(known, ledger=ledger, seen=now)
            elif number not in self._closed:
                self._open[number] = OpenVisit(ledger, now, self._begun)
                self._begun += 1
        for number, record in closed.items():
            self._closed[number] = record
            self._open.pop(number, None)

    def _copy(self, number: int, moment: datetime) -> VisitCounts:
        if number in self._closed:
            return from_record(self._closed[number])
        if (known := self._open.get(number)) is None:
            return VisitCounts(self._survey, number, moment, estimated=True)
        return replace(known.ledger, ranges=dict(known.ledger.ranges))


def from_record(value: bytes) -> VisitCounts:
    """Return the ledger that a record of `visits` holds; whoever began it, from now on it is estimated."""
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
