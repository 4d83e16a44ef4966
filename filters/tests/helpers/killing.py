"""Visits in the midst of which a process of the engine is killed, and what must hold of them
afterwards.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from filters.tests.helpers.accounted import evaluated
from nightwire.filters.decision.decision import Decision
from nightwire.filters.decision.serialize import load_decision

CAP, BEST = 5, 20
"""Places in `few` and in `finest`."""

FEW = """
class Cut:
    def passes(self, alert):
        return sum(range(8000)) > 0 and alert.id % 25 == 3

def keep(alert):
    return Cut().passes(alert)
"""
"""Code, which takes a moment for each alert: the slow lane judges it, in its sandbox."""

CUT = """
class Cut:
    rest = 4

def keep(alert):
    return alert.id % 25 == Cut.rest
"""
"""Code that costs little: once it is measured, the quick lane judges it, in its workers'
sandboxes."""

FINEST = "def keep(alert):\n    return alert.id * 7919 % 10007 if alert.id % 3 else 0\n"
"""No two of ten thousand consecutive ids have the same rank."""

FILTERS = {
    "few": (FEW, "--cap", str(CAP)),
    "cut": (CUT, "--cap", "0"),
    "finest": (FINEST, "--cap", str(BEST), "--choice", "best"),
    "half": ("def keep(alert):\n    return alert.id % 4 < 2\n", "--cap", "0"),
    "quarter": (
        "def keep(alert):\n    return alert.id % 8 < 2\n",
        *("--cap", str(CAP), "--source", "filter.me.half"),
    ),
    "finer": (FINEST, "--cap", str(BEST), "--choice", "best", "--source", "filter.me.half"),
}
"""The last two judge what passed `half`."""

HALF = "filter.me.half"
LANES = ("checkpoint", "lanes/*")
"""Where the lanes of an engine keep their decisions."""
LONG = 500
"""The visit of every second alert: it lasts through all deaths, and its best are held as long."""

ALERTS = 600
"""Alerts of a feed: three batches."""

Site = Any
RecordPosition = tuple[str, int, int]


@dataclass(frozen=True)
class Copy:
    """An alert in a filter's topic, as its headers say."""

    key: str
    version: int
    position: RecordPosition
    visit: int
    alert: int
    again: bool


def copies(site: Site, name: str) -> list[Copy]:
    """Return what lies in a filter's topic."""
    return [
        copy_of({name: value.decode() for name, value in one.headers()})
        for one in site.read(f"filter.me.{name}")
    ]


def copy_of(said: dict[str, str]) -> Copy:
    """Return what headers say."""
    position = said["topic"], int(said["partition"]), int(said["offset"])
    again = said.get("duplicate") == "yes"
    return Copy(said["filter"], int(said["version"]), position, int(said["visit"]), int(said["alert"]), again)


@dataclass
class Ledger:
    """Every decision that the engine stored, of which it keeps only the newest itself.

    Attributes:
        folder: The engine's state, where they lie, those of the slow lanes, too.
        kept: Their texts, by file.
        copies: What is sent when all of them are carried out.
    """

    folder: Path
    kept: dict[Path, str] = field(default_factory=dict)
    copies: set[Copy] = field(default_factory=set)

    def look(self) -> None:
        """Take in what is new; what was decided may never change."""
        for path in (one for kind in LANES for one in self.folder.glob(f"{kind}/decisions/[0-9]*.json")):
            if not (text := text_of(path)):
                continue
            if path not in self.kept:
                self.kept[path] = text
                self.copies.update(carried_out(load_decision(text)))
            assert self.kept[path] == text, path


def carried_out(decision: Decision) -> Iterator[Copy]:
    """Yield what is sent for the filters of the night when a decision is carried out."""
    for item in decision.sent():
        for one in item.passes:
            if one.key.removeprefix("me/") in FILTERS:
                yield Copy(
                    one.key,
                    one.version,
                    item.alert.position,
                    item.alert.visit or 0,
                    int(item.alert.alert),
                    one.again,
                )


def text_of(path: Path) -> str:
    """Return what a file holds; nothing when it is gone."""
    try:
        return path.read_text()
    except FileNotFoundError:
        return ""


@dataclass
class Night:
    """What was written, and what the engine made of it.

    Attributes:
        site: Where the engine runs.
        encode: Makes an alert.
        until: Waits.
        ledger: All decisions.
        before: How many alerts were judged before.
        ids: The ids of each visit's alerts.
    """

    site: Site
    encode: Callable[..., bytes]
    until: Callable[..., Any]
    ledger: Ledger
    before: int
    ids: dict[int, list[int]] = field(default_factory=dict)

    def feed(self) -> int:
        """Write alerts of a new visit, every second one of the long one.

        Return when it is being judged.
        """
        visit, first = LONG + 1 + len(self.ids), 50_000 + self.alerts()
        numbers = range(first, first + ALERTS)
        self.ids.setdefault(LONG, []).extend(numbers[::2])
        self.ids[visit] = list(numbers[1::2])
        of = {number: LONG if n % 2 == 0 else visit for n, number in enumerate(numbers)}
        self.site.write("alerts.sim", [self.encode(number, visit=of[number]) for number in numbers])
        self.until(lambda: visit in self.decided(), 60, self.said)
        return visit

    def decided(self) -> set[int]:
        """Return the visits that something was decided of."""
        self.ledger.look()
        return {one.visit for one in self.ledger.copies}

    def settle(self, visit: int, judged: Callable[[], int]) -> None:
        """Wait until all that was fed is judged, and a visit that is closed is over."""
        expected = self.before + self.alerts()
        self.until(lambda: self.ledger.look() or judged() == expected, 120, self.said)
        for key in ("me/few", "me/cut"):
            self.until(
                lambda key=key: self.ledger.look() or evaluated(self.site, key) == self.alerts(),
                120,
                self.said,
            )
        for name, wanted in self.best(visit).items():
            self.until(
                lambda name=name, wanted=wanted: self.ledger.look() or wanted <= self.delivered(name, visit),
                60,
                self.said,
            )

    def alerts(self) -> int:
        """Return how many were fed."""
        return sum(map(len, self.ids.values()))

    def said(self) -> str:
        """Return the end of the engine's log."""
        return str(self.site.log.read_text()[-3000:])

    def best(self, visit: int) -> dict[str, set[int]]:
        """Return the best alerts of a visit, of all and of `half`, found among all at once."""
        return {"finest": finest(self.ids[visit]), "finer": finest(filter(in_half, self.ids[visit]))}

    def delivered(self, name: str, visit: int) -> set[int]:
        """Return the ids of a visit in a filter's topic."""
        return {one.alert for one in copies(self.site, name) if one.visit == visit}

    def check(self, visit: int) -> None:
        """Check that a visit's alerts are where they belong, as if nobody had died."""
        half = set(filter(in_half, self.ids[visit]))
        passed = {
            "few": {number for number in self.ids[visit] if number % 25 == 3},
            "quarter": {number for number in half if number % 8 < 2},
        }
        for name, some in passed.items():
            first = self.delivered(name, visit)
            assert first <= some
            assert len(first) == min(CAP, len(some))
        for name, some in self.best(visit).items():
            assert self.delivered(name, visit) == some
        assert self.delivered("half", visit) == half
        assert self.delivered("cut", visit) == {one for one in self.ids[visit] if one % 25 == 4}
        for name in FILTERS:
            assert_once(copies(self.site, name))

    def check_decisions(self) -> None:
        """Check that the topics hold what the decisions say, no more and no less."""
        self.ledger.look()
        lie = {one for name in FILTERS for one in copies(self.site, name)}
        origins = {
            (one.topic(), one.partition(), one.offset()): copy.position
            for one, copy in zip(self.site.read(HALF), copies(self.site, "half"), strict=True)
        }
        assert lie == {
            replace(one, position=origins.get(one.position, one.position)) for one in self.ledger.copies
        }


def in_half(number: int) -> bool:
    """Return whether an alert passes `half`."""
    return number % 4 < 2


def finest(numbers: Iterable[int]) -> set[int]:
    """Return the alerts of highest rank."""
    ranks = {number: number * 7919 % 10007 for number in numbers if number % 3}
    return set(sorted(ranks, key=lambda number: -ranks[number])[:BEST])


def assert_once(found: Iterable[Copy]) -> None:
    """Check that copies of one alert are the same copy sent again, or marked as duplicates."""
    positions = {(one.alert, one.position) for one in found if not one.again}
    twice = {alert for alert, count in Counter(alert for alert, _ in positions).items() if count > 1}
    assert twice == set()


DAEMON = "-m nightwire.filters.spark.daemon"
"""Spark's workers are forked from it."""

ZYGOTE = "nightwire.filters.sandbox.zygote"
"""The parent of sandboxed processes."""


SPAWNED = "multiprocessing.spawn"
"""The process of the slow lanes."""


def worker(site: Site) -> psutil.Process:
    """Return a Python worker of Spark's."""
    return one_of(site, lambda one: has(one, DAEMON) and has(one.parent(), DAEMON))


def zygote(site: Site) -> psutil.Process:
    """Return the parent of a worker's sandbox."""
    return one_of(site, lambda one: has(one, ZYGOTE) and has(one.parent(), DAEMON))


def sandboxed(site: Site) -> psutil.Process:
    """Return an owner's process in a worker's sandbox; at work, if it is soon."""
    found = one_of(site, lambda one: has(one.parent(), ZYGOTE) and has(one.parent().parent(), DAEMON))
    for _ in range(2000):
        if found.status() == psutil.STATUS_RUNNING:
            break
    return found


def slow_lanes(site: Site) -> psutil.Process:
    """Return the process of the slow lanes."""
    return one_of(site, lambda one: has(one, SPAWNED))


def slow_sandboxed(site: Site) -> psutil.Process:
    """Return an owner's process in the sandbox of the slow lanes."""
    return one_of(site, lambda one: has(one.parent(), ZYGOTE) and has(one.parent().parent(), SPAWNED))


def planner(site: Site) -> psutil.Process:
    """Return the process in which Spark plans."""
    return one_of(site, lambda one: has(one, "python_streaming_source_runner"))


def java(site: Site) -> psutil.Process:
    """Return Spark's Java process."""
    return one_of(site, lambda one: has(one, "org.apache.spark.deploy"))


def has(one: psutil.Process | None, word: str) -> bool:
    """Return whether a process's command line has *word*."""
    return one is not None and word in " ".join(one.cmdline())


def one_of(site: Site, wanted: Callable[[psutil.Process], bool], wait: float = 10.0) -> psutil.Process:
    """Return the first process below the engine that is *wanted*, once there is one; waits [s]."""
    end = time.monotonic() + wait
    while time.monotonic() < end:
        for child in psutil.Process(site.child.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
                if wanted(child):
                    return child
        time.sleep(0.02)  # polling a condition
    return pytest.fail(f"the engine has no such process\n{site.log.read_text()[-3000:]}")
