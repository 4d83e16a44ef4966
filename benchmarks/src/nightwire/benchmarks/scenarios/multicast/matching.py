"""Subscriptions by the thousands: who passes an event, who covers whom; beside a plain scan.

All is told in CPU time of the one thread that it takes.
"""

import time
from collections.abc import Sequence

import numpy as np

from nightwire.benchmarks import Context, Experiment, Figures, Kind, RunError
from nightwire.benchmarks.model.statistics import quantile
from nightwire.benchmarks.scenarios.multicast.population import (
    Array,
    Events,
    Subscriptions,
    events,
    subscriptions,
    tightened,
)
from nightwire.filters.language.subscriptions import Matcher, Roots

INSERTED = 10_000
"""Subscriptions whose roots are kept."""
TEMPLATES = 200
LATE = 2_000
"""Inserts that are timed, the last ones."""
BATCH = 1_000
"""Most events that are judged at once."""
MILLI = 1e3


def scan(of: Subscriptions, given: Events, at: int) -> Array:
    """Return who passes an event, by a look at each constraint of each."""
    values = given.values[at]
    found = ((of.low <= values) & (values <= of.high)).all(axis=1)
    return np.flatnonzero(found & ((of.text < 0) | (of.text == given.text[at])))


def scan_roots(of: Subscriptions, at: int) -> Array:
    """Return who of the first *at* subscriptions covers the next, by a look at each."""
    covering = (of.low[:at] <= of.low[at]) & (of.high[at] <= of.high[:at])
    return np.flatnonzero(covering.all(axis=1) & ((of.text[:at] < 0) | (of.text[:at] == of.text[at])))


class Matching(Experiment):
    """How many events a second a matcher judges, of populations that grow."""

    name = "matching"

    def __init__(self, context: Context, counts: Sequence[int]) -> None:
        self._context, self._counts = context, counts

    def prepare(self) -> None:
        """Fill a matcher of each size, and see that it says what a scan says."""
        self._of: dict[int, Subscriptions] = {}
        self._matchers: dict[int, Matcher] = {}
        for count in self._counts:
            self._context.say(f"making {count:,} subscriptions")
            of = self._of[count] = subscriptions(count)
            matcher = self._matchers[count] = Matcher()
            matcher.insert_many(enumerate(of.forms()))
            _check(matcher, of)

    def run_once(self, kind: Kind) -> Figures:
        """Judge events by each."""
        figures: Figures = {}
        for count in self._counts:
            given = events(min(BATCH, max(64, 50_000_000 // count)))
            if kind is Kind.BASELINE:
                figures[f"matched_{count}_per_s"] = _scanned(self._of[count], given)
            else:
                rate, passed = _matched(self._matchers[count], given)
                figures |= {f"matched_{count}_per_s": rate, f"passed_by_{count}": passed}
        return figures

    def tear_down(self) -> None:
        """Let all go."""
        self._of, self._matchers = {}, {}


def _check(matcher: Matcher, of: Subscriptions) -> None:
    some = events(20, seed=2)
    found = matcher.match(some.table())
    for at in range(20):
        if found.keys(at) != scan(of, some, at).tolist():
            raise RunError(f"matcher and scan do not agree on event {at} and {len(of):,} subscriptions")


def _matched(matcher: Matcher, given: Events) -> tuple[float, float]:
    tables = [given.table() for _ in range(3)]
    began = time.thread_time()
    passed = [matcher.match(table).counts.mean() for table in tables]
    return len(tables) * len(given.text) / (time.thread_time() - began), float(np.mean(passed))


def _scanned(of: Subscriptions, given: Events) -> float:
    count = max(5, min(len(given.text), 10_000_000 // len(of)))
    began = time.thread_time()
    for at in range(min(count, len(given.text))):
        scan(of, given, at)
    return min(count, len(given.text)) / (time.thread_time() - began)


class Inserting(Experiment):
    """A subscription comes to ten thousand: is it covered, does it cover?"""

    name = "inserting"

    def prepare(self) -> None:
        """Make both populations: each for itself, and templates that users tighten."""
        self._mixed, self._templates = subscriptions(INSERTED), tightened(INSERTED, TEMPLATES)

    def run_once(self, kind: Kind) -> Figures:
        """Insert all, and time the last."""
        if kind is Kind.BASELINE:
            taken = [_timed_scan(self._mixed, at) for at in range(INSERTED - LATE, INSERTED)]
            return {"insert_p99_ms": quantile(taken, 0.99) * MILLI}
        _, mixed = _rooted(self._mixed)
        roots, taken = _rooted(self._templates)
        return {
            "insert_p99_ms": quantile(mixed, 0.99) * MILLI,
            "insert_templates_p99_ms": quantile(taken, 0.99) * MILLI,
            "roots_share": sum(1 for _ in roots) / INSERTED,
            "remove_root_ms": _removed(roots) * MILLI,
        }


def _timed_scan(of: Subscriptions, at: int) -> float:
    began = time.thread_time()
    scan_roots(of, at)
    return time.thread_time() - began


def _rooted(of: Subscriptions) -> tuple[Roots, list[float]]:
    """Return the roots, and how long each of the last inserts took. [s]"""
    roots, taken = Roots(), list[float]()
    for key, form in enumerate(of.forms()):
        began = time.thread_time()
        roots.insert(key, form)
        taken.append(time.thread_time() - began)
    return roots, taken[-LATE:]


def _removed(roots: Roots) -> float:
    """Return how long it takes to remove a root, on average. [s]"""
    some = [*roots][:20]
    began = time.thread_time()
    for root in some:
        roots.remove(root)
    return (time.thread_time() - began) / len(some)
