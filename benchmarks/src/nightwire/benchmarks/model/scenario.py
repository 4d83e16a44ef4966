"""What a scenario is, to the harness that runs it and to the report that shows it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from nightwire.benchmarks.model.sample import Figures, Kind, Sample, TcpTraffic


class RunError(Exception):
    """A run did not give what it must; nothing of it is reported."""


class Better(StrEnum):
    """Which way a figure improves."""

    LOWER = "lower"
    HIGHER = "higher"


@dataclass(frozen=True)
class Published:
    """A figure that somebody else has published, with what was different."""

    value: float
    who: str
    machine: str


@dataclass(frozen=True)
class Figure:
    """A figure that a scenario reports.

    Attributes:
        name: Its key in a run's figures and in the results.
        unit: ``s``, ``ms``, ``1/s``, ``1`` …
        title: What it is, for people.
        better: Which way it improves.
        baseline: What its baseline is; empty where it has none.
        share_of: Name of the figure whose ratio to the baseline is this figure's value.
        headline: Whether it belongs into the table that opens the report.
        published: What others have measured.
        group: Heading under which it stands among all figures; empty where one list will do.
    """

    name: str
    unit: str
    title: str
    better: Better = Better.LOWER
    baseline: str = ""
    share_of: str = ""
    headline: bool = False
    published: Published | None = None
    group: str = ""


@dataclass(frozen=True)
class Line:
    """One line of a plot."""

    name: str
    x: Sequence[float]
    y: Sequence[float]


@dataclass(frozen=True)
class Series:
    """A plot: what is drawn against what."""

    title: str
    x: str
    y: str
    lines: Sequence[Line]
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True)
class Table:
    """Rows of texts under a head; the first of each says what it is of."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Needs:
    """What a scenario takes: disk [byte], memory [byte] and time [s], estimated generously."""

    disk: int
    memory: int
    seconds: float


@dataclass(frozen=True)
class Size:
    """How much of a scenario to run.

    Attributes:
        alerts: Alerts in each run.
        pairs: Pairs of subject and baseline.
        rate: Alerts a second, where a scenario paces them.
        profile: ``quick`` or ``full``.
    """

    alerts: int
    pairs: int
    rate: float
    profile: str = "quick"


@dataclass(frozen=True)
class Context:
    """What the harness gives to a scenario.

    Attributes:
        folder: An empty folder, removed afterwards.
        size: How much to run.
        bootstrap: A Kafka that is there already; None: start one.
        engine: ``own`` (start a filter engine), ``there`` (one is running), ``none`` (leave it
            out).
        role: Give the process with this id a name in the table of processes.
        say: Tell a person what goes on.
        traffic: Note what the processes of a name moved over TCP in this run.
    """

    folder: Path
    size: Size
    bootstrap: str | None = None
    engine: str = "own"
    role: Callable[[int, str], None] = lambda _pid, _name: None
    say: Callable[[str], None] = lambda _text: None
    traffic: Callable[[str, TcpTraffic], None] = lambda _name, _moved: None


Closed = TypeVar("Closed", bound="Closeable")


class Closeable:
    """Ends by `close` what it has started."""

    @cached_property
    def exits(self) -> ExitStack:
        """Ends what was started."""
        return ExitStack()

    def closing(self, one: Closed) -> Closed:
        """Return *one*, which is closed together with this."""
        self.exits.callback(one.close)
        return one

    def close(self) -> None:
        """End what was started, the last first."""
        self.exits.close()


class Experiment(Closeable, ABC):
    """One question, asked in alternating pairs.

    Attributes:
        name: Its own.
        at_most: Most runs of a kind, where it is not in every pair; 0: there is none of that kind.
    """

    name: str
    at_most: Mapping[Kind, int] = {}

    def prepare(self) -> None:
        """Start what it needs and warm it up; nothing here is measured."""

    @abstractmethod
    def run_once(self, kind: Kind) -> Figures:
        """Run subject or baseline once, and return what was measured."""

    def tear_down(self) -> None:
        """Stop what `prepare` started; called also after a failure in it."""
        self.close()


@dataclass(frozen=True)
class Outcome:
    """What a scenario shows beside its figures.

    Attributes:
        series: Plots.
        notes: What a reader of the figures must know, such as reductions.
        open_messaging: Keys of OpenMessaging Benchmark's result files.
        tables: Tables.
    """

    series: Sequence[Series] = ()
    notes: Sequence[str] = ()
    open_messaging: Mapping[str, Any] = field(default_factory=dict)
    tables: Sequence[Table] = ()


class Scenario(Closeable, ABC):
    """Experiments that belong together, and the figures that come out of them.

    Attributes:
        name: As it is typed.
        title: As it is printed.
        measures: What is measured and how, in a few sentences for the report.
        figures: What it reports.
        standard: Its size by profile.
    """

    name: str
    title: str
    measures: str
    figures: Sequence[Figure]
    standard: Mapping[str, Size]

    @abstractmethod
    def needs(self, size: Size) -> Needs:
        """Return what a run of *size* takes."""

    @abstractmethod
    def experiments(self, context: Context) -> Sequence[Experiment]:
        """Return the experiments, in the order in which they run."""

    def tear_down(self) -> None:
        """End what experiments share; called also after a failure."""
        self.close()

    @abstractmethod
    def outcome(self, samples: Sequence[Sample]) -> Outcome:
        """Return what there is to show beside figures, once all *samples* were taken."""
