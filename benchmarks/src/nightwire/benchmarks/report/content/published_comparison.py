"""Published numbers beside those of results.  Pure: entries and results in, rows and lines out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from nightwire.benchmarks import Better, Line
from nightwire.benchmarks.report.content.formatting import Entry, Result, advantage
from nightwire.benchmarks.report.content.publications import Curve, Measured, Ours, Published
from nightwire.benchmarks.report.content.resource_use import SAMPLED, over_time, process_use, thinned

POINTS = 200
"""Of a line over time, at most."""
Results = Mapping[str, Result]
"""The newest result of each scenario, by its name."""


@dataclass(frozen=True)
class ComparedRow:
    """A published number and ours.

    Attributes:
        title: What it is of.
        unit: Of all three values.
        theirs: What was published; None where no number was.
        also: What was published with it.
        source: Where that stands.
        ours: Ours; None where there is none.
        baseline: What ours was measured beside, in the same run.
        entry: The result's entry that ours is from.
        missing: Why there is none; a command where it was not measured yet.
    """

    title: str
    unit: str
    theirs: float | None
    also: str
    source: str
    ours: float | None = None
    baseline: float | None = None
    entry: Entry | None = None
    missing: str = ""

    @property
    def better(self) -> str:
        """Which way it improves; where no figure says it, as rates and all else do."""
        if self.entry is not None:
            return str(self.entry["better"])
        return Better.HIGHER if self.unit.endswith("/s") else Better.LOWER

    @property
    def to_theirs(self) -> float | None:
        """How many times better ours is than what was published."""
        if self.ours is None or not self.theirs:
            return None
        return advantage(self.ours / self.theirs, self.better)


@dataclass(frozen=True)
class PlotLine:
    """A line of a plot.

    Attributes:
        side: ``theirs``, ``value`` (ours) or ``baseline`` (ours).
        place: Among the lines of its side, measured or not, so that its colour stays.
        line: Its points.
    """

    side: str
    place: int
    line: Line


def by_name(results: Sequence[Result]) -> Results:
    """Return *results* by the names of their scenarios."""
    return {result["scenario"]: result for result in results}


def figure(results: Results, scenario: str, name: str) -> Entry | None:
    """Return the entry of a figure; None where it was not measured."""
    entries = results[scenario]["results"] if scenario in results else ()
    return next((one for one in entries if one["name"] == name), None)


def not_measured(results: Results, scenario: str, *, recorded: bool = False) -> str:
    """Return what would measure a figure that no result has."""
    if scenario not in results:
        return f"not measured yet: nightwire bench run {scenario}"
    if "recorded" not in results[scenario] and recorded:
        return f"not recorded in the newest run: nightwire bench run {scenario}"
    if results[scenario]["size"]["profile"] == "quick":
        return f"not in the quick profile: nightwire bench run {scenario} --profile full"
    return f"not in the newest run: nightwire bench run {scenario} --profile full"


def rows(entry: Published, results: Results) -> list[ComparedRow]:
    """Return a row for each number of *entry*, and for each of its points that ours may have."""
    return [*_of_lines(entry, results), *(_of_number(one, results) for one in entry.measured)]


def _of_number(one: Measured, results: Results) -> ComparedRow:
    row = ComparedRow(one.title, one.unit, one.value, one.also, one.source)
    if not (one.figure or one.process):
        return replace(row, missing=one.reason)
    if one.figure:
        return _with(row, figure(results, one.scenario, one.figure), one, results)
    result = results.get(one.scenario)
    return _with(row, process_use(result, one) if result else None, one, results)


def _with(row: ComparedRow, found: Entry | None, where: Measured | Ours, results: Results) -> ComparedRow:
    """Return *row* with what was *found* of ours, or with what would measure it."""
    if found is None:
        recorded = bool(where.use) and where.use not in SAMPLED
        return replace(row, missing=not_measured(results, where.scenario, recorded=recorded))
    ours, baseline = found["value"] * where.scale, _scaled(found["baseline"], where.scale)
    return replace(row, ours=ours, baseline=baseline, entry=found)


def _scaled(value: float | None, scale: float) -> float | None:
    return None if value is None else value * scale


def _of_lines(entry: Published, results: Results) -> Iterator[ComparedRow]:
    """Yield the published points; where ours is a series, those at places that it has."""
    (place, of), (_value, unit) = axis(entry.x), axis(entry.y)
    for curve in entry.lines:
        if curve.level:
            continue
        our = _compared(entry, curve)
        for x, y in zip(curve.x, curve.y, strict=True):
            title = f"{place}: {x:,.10g}" if of == "1" else f"{x:,.10g} {of}"
            row = ComparedRow(title, unit, y, curve.name, "")
            if our is None:
                yield row
            elif (name := dict(our.figures()).get(x)) is not None:
                yield _with(row, figure(results, our.scenario, name), our, results)
            elif x in (here := _series_points(our, results)):
                yield replace(row, ours=here[x])


def _compared(entry: Published, curve: Curve) -> Ours | None:
    named = [one for one in entry.ours if one.name == curve.beside] or list(entry.ours[:1])
    return named[0] if named else None


def _series_points(our: Ours, results: Results) -> dict[float, float]:
    line = ours_line(our, results)
    return dict(zip(line.x, line.y, strict=True)) if line else {}


def ours_line(our: Ours, results: Results) -> Line | None:
    """Return the points of *our* line that were measured; None where none was."""
    points = list(_points(our, results))
    return Line(our.name, *zip(*points, strict=True)) if points else None


def _points(our: Ours, results: Results) -> Iterator[tuple[float, float]]:
    for x, name in our.figures():
        found = figure(results, our.scenario, name)
        if found is not None and found[our.side] is not None:
            yield x, found[our.side] * our.scale
    result = results.get(our.scenario)
    if result and our.process:
        yield from ((x, y * our.scale) for x, y in thinned(over_time(result, our.process, our.use), POINTS))
    for series in result["series"] if result else ():
        if (series["title"], series["x"]) == (our.series, our.axis):
            for line in series["lines"]:
                if line["name"] == our.line:
                    yield from zip(line["x"], (y * our.scale for y in line["y"]), strict=True)


def drawn(entry: Published, results: Results) -> tuple[PlotLine, ...]:
    """Return the lines of a plot, theirs first, divided where the paper divides."""
    theirs = [PlotLine("theirs", n, Line(one.name, one.x, one.y)) for n, one in enumerate(entry.lines)]
    ours = [
        PlotLine(side, place, line)
        for side in ("value", "baseline")
        for place, one in enumerate(one for one in entry.ours if one.side == side)
        if (line := ours_line(one, results))
    ]
    return tuple(replace(one, line=_divided(one.line)) if entry.divided else one for one in [*theirs, *ours])


def _divided(line: Line) -> Line:
    return Line(line.name, line.x, tuple(y / x for x, y in zip(line.x, line.y, strict=True)))


def axis(words: str) -> tuple[str, str]:
    """Return the name and the unit of an axis; the unit is 1 where none stands in brackets."""
    name, _bracket, unit = words.partition(" [")
    return name, unit.rstrip("]") or "1"


def answered(entry: Published, results: Results) -> bool:
    """Return whether something of ours stands beside *entry*."""
    rows_of_ours = (row.ours is not None for row in rows(entry, results))
    return any(rows_of_ours) or any(ours_line(one, results) for one in entry.ours)


def missing(entry: Published, results: Results) -> list[tuple[str, str]]:
    """Return what of *entry* has none of ours, and why: all of it under an empty name."""
    if entry.reason or not (entry.measured or answered(entry, results)):
        recorded = any(one.use for one in entry.ours)
        return [("", entry.reason or not_measured(results, entry.scenario, recorded=recorded))]
    return [(row.title, row.missing) for row in rows(entry, results) if row.ours is None]
