"""The table of live interests, a fold over the topic `subscriptions`.  Pure.

The log is the only clock: it goes on by the times at which Kafka appended records, and between them
by the time that its follower waited while Kafka answered.  So an outage of Kafka ends no interest.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from nightwire.core.subscriptions.interest import interest_of
from nightwire.schemas import MendableError

MISSED = 2
"""Missed refreshes after which an interest is dead."""
LONGEST_STEP = 3.0
"""Most time that passes between two records while no follower waited; a clock that goes back by
more was set right. [s]"""
MAX_INTERESTS = 1_000_000
"""Most interests; more are refused."""


@dataclass(frozen=True)
class LiveInterest:
    """An interest that holds.

    Attributes:
        record: Its `records.SUBSCRIPTION`.
        offset: Of the oldest record of the interest as it is that compaction has left.
        refreshed: Its last refresh. [s, of the log's clock]
        appended: Kafka's time of the refresh. [ms since 1970]
    """

    record: Mapping[str, Any]
    offset: int
    refreshed: float
    appended: int

    def holds(self, now: float, time: int) -> bool:
        """Return whether it holds at *now* [s, of the log's clock].  *time*: [ms since 1970]"""
        expires = self.record["expires"]
        expired = expires is not None and time >= 1000 * expires.timestamp()
        return not expired and now - self.refreshed <= MISSED * self.record["interval"]


class SubscriptionTable:
    """The live interests of the log, record by record.

    Attributes:
        refused: Malformed records, and those beyond `MAX_INTERESTS`.
        position: Offset after the last record.
    """

    def __init__(self) -> None:
        self._interests: dict[str, LiveInterest] = {}
        self._base, self._waited, self._newest = 0.0, 0.0, 0
        self._following = False
        self.refused = self.position = 0

    @property
    def now(self) -> float:
        """The log's present. [s since its first record, less outages]"""
        return self._base + self._waited

    @property
    def time(self) -> int:
        """The log's present by Kafka's clock. [ms since 1970]"""
        return self._newest + round(1000 * self._waited)

    def apply(self, key: str, value: bytes | None, appended: int, offset: int) -> None:
        """Apply a record.

        Args:
            key: Its key.
            value: Its value; None is a tombstone.
            appended: When Kafka appended it. [ms since 1970]
            offset: Its offset.
        """
        self._advance(appended)
        self.position = offset + 1
        if value is None:
            self._interests.pop(key, None)
            return
        try:
            self._put(key, interest_of(key, value), offset)
        except MendableError:
            self.refused += 1

    def _put(self, key: str, record: Mapping[str, Any], offset: int) -> None:
        before = self._interests.get(key)
        if before is None and len(self._interests) >= MAX_INTERESTS:
            self.refused += 1
            return
        same = before is not None and before.holds(self.now, self.time) and _same_interest(before, record)
        since = before.offset if before is not None and same else offset
        self._interests[key] = LiveInterest(record, since, self.now, self._newest)

    def _advance(self, appended: int) -> None:
        if self._newest:
            step = max(0.0, (appended - self._newest) / 1000)
            most = max(self._waited, LONGEST_STEP)
            self._base += max(self._waited, min(step, most)) if self._following else step
        set_back = self._following and self._newest - appended > 1000 * LONGEST_STEP
        self._newest, self._waited = appended if set_back else max(self._newest, appended), 0.0

    def caught_up(self) -> None:
        """Follow the log from here on: it was read to its end.

        A silence that ends there may have been Kafka's own: each live interest has one more
        interval for its refresh.
        """
        if self._following:
            return
        self._following = True
        for key, one in self._interests.items():
            earliest = self.now - one.record["interval"]
            self._interests[key] = replace(one, refreshed=max(one.refreshed, earliest))

    def wait(self, seconds: float) -> None:
        """Count *seconds* without records, though Kafka answered; delete dead interests."""
        self._waited += seconds
        dead = [key for key, one in self._interests.items() if not one.holds(self.now, self.time)]
        for key in dead:
            del self._interests[key]

    def live(self, topic: str | None = None, kind: str = "subscription") -> Iterator[LiveInterest]:
        """Yield the interests of *kind* in *topic*, or in any, that hold now."""
        for one in self._interests.values():
            wanted = one.record["kind"] == kind and topic in (None, one.record["topic"])
            if wanted and one.holds(self.now, self.time):
                yield one


INTEREST_FIELDS = ("kind", "topic", "condition", "channel")


def _same_interest(before: LiveInterest, record: Mapping[str, Any]) -> bool:
    return all(before.record[name] == record[name] for name in INTEREST_FIELDS)
