"""What others published, and which of our figures answer it: ``papers/``, one file a paper."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class Measured:
    """A number that was published, and where ours is: a figure, or what a process used.

    Attributes:
        title: What it is of.
        unit: As in `Figure`.
        source: The section or the table that has it.
        value: As published, in *unit*; None where it has none, and ours stands alone.
        also: What was published with it, such as its spread.
        scenario: Which has ours; empty: that of the entry.
        figure: Ours, by its name in that scenario; empty where there is none.
        experiment: Ours, where it is what a *process* used in this experiment.
        process: Its name.
        use: ``cpu_seconds``, ``peak_rss_bytes``, ``sent_bytes``, ``received_bytes``, or a quantity
            of the recorder, added up over a run.
        scale: From the unit of ours to *unit*.
        reason: Why there is none of ours.
    """

    title: str
    unit: str
    source: str
    value: float | None = None
    also: str = ""
    scenario: str = ""
    figure: str = ""
    experiment: str = ""
    process: str = ""
    use: str = ""
    scale: float = 1.0
    reason: str = ""


@dataclass(frozen=True)
class Curve:
    """Points of a published figure, as far as there are numbers of them.

    Attributes:
        name: In the legend.
        x: Where.
        y: What.
        source: The section or the table that has them.
        beside: Name of our line that is compared with it; empty: the first.
        level: Whether it is a limit, drawn from end to end, and no points.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    source: str
    beside: str = ""
    level: bool = False


@dataclass(frozen=True)
class Ours:
    """A line of ours: figures whose names have their place in them, or a line of a result's series.

    Attributes:
        name: In the legend.
        scenario: Which has it; empty: that of the entry.
        figure: Names of figures, with ``{x}`` for the place.
        x: The places.
        labels: What the places are called in those names; empty: as they are.
        side: ``value`` (ours) or ``baseline``.
        series: Title of a series, where it is not made of figures.
        axis: That series' horizontal axis.
        line: Name of its line.
        process: Whose *use* over time it is, where it is what the recorder has.
        use: Quantity of the recorder.
        scale: From the unit of ours to that of the axis.
    """

    name: str
    scenario: str = ""
    figure: str = ""
    x: Sequence[float] = ()
    labels: Sequence[str] = ()
    side: str = "value"
    series: str = ""
    axis: str = ""
    line: str = ""
    process: str = ""
    use: str = ""
    scale: float = 1.0

    def figures(self) -> list[tuple[float, str]]:
        """Return each place and the figure that has its value."""
        return [
            (x, self.figure.format(x=label)) for x, label in zip(self.x, self.labels or self.x, strict=True)
        ]


@dataclass(frozen=True)
class Published:
    """A table, a figure, or an experiment told in words.

    Attributes:
        number: As the paper counts it, or its heading.
        title: What it is called.
        shows: What it shows, in a sentence.
        source: Where its numbers stand.
        x, y: Its axes, with units; empty for a table.
        log_x, log_y: Whether they are logarithmic here.
        divided: Whether what is drawn is divided by *x*, as the paper does.
        scenario: Which of ours answers it.
        method: How it was measured, where it differs from the paper's other measurements.
        differs: What is different with ours.
        reason: Why none of ours answers it.
        measured: Its numbers.
        lines: Its points.
        ours: Our lines.
    """

    number: str
    title: str
    shows: str
    source: str
    x: str = ""
    y: str = ""
    log_x: bool = False
    log_y: bool = False
    divided: bool = False
    scenario: str = ""
    method: str = ""
    differs: str = ""
    reason: str = ""
    measured: Sequence[Measured] = ()
    lines: Sequence[Curve] = ()
    ours: Sequence[Ours] = ()


@dataclass(frozen=True)
class Paper:
    """A paper, or a technical note.

    Attributes:
        key: For links.
        seed: Number of the document among those that the project began with.
        name: How it is cited.
        title: Its title.
        where: Where it appeared.
        figures: How many figures it has.
        tables: How many numbered tables.
        machine: What it was measured on.
        method: How.
        differs: What is different with ours, in all of it.
        without: Tables and figures without measurements, and what they are.
        entries: Those with.
    """

    key: str
    seed: str
    name: str
    title: str
    where: str
    figures: int
    tables: int
    machine: str
    method: str
    differs: str
    without: Mapping[str, str] = field(default_factory=dict)
    entries: Sequence[Published] = ()


@cache
def papers() -> tuple[Paper, ...]:
    """Return all papers, in the order of their seeds."""
    folder = files("nightwire.benchmarks.report").joinpath("papers")
    texts = [one.read_text(encoding="utf-8") for one in folder.iterdir() if one.name.endswith(".toml")]
    return tuple(sorted((_paper(tomllib.loads(text)) for text in texts), key=lambda one: one.seed))


def _paper(table: dict[str, Any]) -> Paper:
    entries = tuple(_entry(one) for one in table.pop("entry"))
    return Paper(**table, entries=entries)


def _tuples(table: dict[str, Any]) -> dict[str, Any]:
    """Make lists tuples, so that what is made of them can be kept by what it was made of."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in table.items()}


def _entry(table: dict[str, Any]) -> Published:
    """Make an entry; its parts have its scenario where they name none."""
    scenario = table.get("scenario", "")
    measured = tuple(Measured(**{"scenario": scenario} | one) for one in table.pop("measured", []))
    ours = tuple(Ours(**{"scenario": scenario} | _tuples(one)) for one in table.pop("ours", []))
    lines = tuple(Curve(**_tuples(one)) for one in table.pop("line", []))
    return Published(**table, measured=measured, lines=lines, ours=ours)
