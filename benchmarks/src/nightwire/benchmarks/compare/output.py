"""A comparison as a table for people, and as JSON for programs."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from nightwire.benchmarks.compare.comparison import Comparison, FigureChange
from nightwire.benchmarks.compare.lookup import Found
from nightwire.benchmarks.compare.significance import Verdict
from nightwire.benchmarks.model.statistics import rounded
from nightwire.benchmarks.report.content.formatting import measure, number

STYLES = {Verdict.SLOWER: "bold red", Verdict.QUICKER: "green", Verdict.SAME: "", Verdict.UNKNOWN: "dim"}
CHANGED = (Verdict.SLOWER, Verdict.QUICKER)


def shown(one: Comparison, before: Found, after: Found, *, every: bool) -> RenderableType:
    """Return *one* for a terminal: what changed, and how many did not; with *every*, all."""
    verdicts = tuple(Verdict) if every else CHANGED
    changes = [change for verdict in verdicts for change in one.of(verdict)]
    parts: list[RenderableType] = [Text(f"{one.scenario}: {origin(before)} → {origin(after)}", style="bold")]
    parts += [table(changes)] if changes else [Text("nothing changed")]
    return Group(*parts, *(Text(line) for line in counted(one)), *(Text(line) for line in one.remarks))


def origin(found: Found) -> str:
    """Return where a result is from: commit, time, file."""
    version = found.result["versions"]
    dirty = " with changes" if version["dirty"] else ""
    return (
        f"{version['commit']}{dirty} ({found.result['beginTime'][:16].replace('T', ' ')}, {found.path.name})"
    )


def table(changes: list[FigureChange]) -> Table:
    """Return a line for each of *changes*."""
    drawn = Table(box=None, pad_edge=False, header_style="dim")
    drawn.add_column("")
    drawn.add_column("figure", overflow="fold")
    for name in ("before", "after", "change", "noise", "runs"):
        drawn.add_column(name, justify="right", no_wrap=True)
    for one in changes:
        drawn.add_row(*_cells(one), style=STYLES[one.verdict])
    return drawn


def _cells(one: FigureChange) -> list[str]:
    def words(value: float) -> str:
        return f"{number(value)} ×" if one.by == "ratio" else measure(value, one.unit)

    change = "–" if one.change is None else f"{one.change:+.0%}"
    noise = "–" if one.noise is None else f"± {one.noise:.0%}"
    runs = f"{one.runs[0]}, {one.runs[1]}"
    return [_verdict(one), one.name, words(one.before), words(one.after), change, noise, runs]


def _verdict(one: FigureChange) -> str:
    return f"? {one.why}" if one.verdict is Verdict.UNKNOWN else one.verdict.value


def counted(one: Comparison) -> Iterator[str]:
    """Yield how many figures became what, and how they were compared."""
    counts = Counter(change.verdict for change in one.changes)
    yield ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in Verdict) + _reasons(one)
    by = Counter(change.by for change in one.changes)
    yield f"compared by the ratio to a baseline (×): {by['ratio']}; by value, for want of one: {by['value']}"
    if one.missing:
        yield f"in one of the two only: {', '.join(one.missing)}"


def _reasons(one: Comparison) -> str:
    why = Counter(change.why for change in one.changes if change.why)
    reasons = ", ".join(f"{reason} {count}" for reason, count in why.most_common())
    return f" ({reasons})" if reasons else ""


def as_json(one: Comparison, before: Found, after: Found) -> dict[str, Any]:
    """Return *one* for programs."""
    return {
        "scenario": one.scenario,
        "before": _source(before),
        "after": _source(after),
        "remarks": list(one.remarks),
        "missing": list(one.missing),
        "figures": [_figure(change) for change in one.changes],
    }


def _figure(one: FigureChange) -> dict[str, Any]:
    return {name: rounded(value) if isinstance(value, float) else value for name, value in vars(one).items()}


def _source(found: Found) -> dict[str, Any]:
    result = found.result
    return {
        "file": str(found.path),
        "commit": result["versions"]["commit"],
        "dirty": result["versions"]["dirty"],
        "beginTime": result["beginTime"],
    }
