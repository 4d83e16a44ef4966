"""What `nightwire bench compare` does: find, compare, print as tables or JSON."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from nightwire.benchmarks.compare.comparison import CompareError, Comparison, FigureChange, compare
from nightwire.benchmarks.compare.lookup import Found, find, newest_after
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


def comparison_json(one: Comparison, before: Found, after: Found) -> dict[str, Any]:
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


Compared = tuple[Comparison, Found, Found]


@dataclass
class Pairing:
    """Results that belong together, and why others do not."""

    pairs: list[tuple[Found, Found]] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


def compare_words(
    before: str, after: str | None, folder: Path, least: float, *, every: bool, as_json: bool
) -> bool:
    """Compare what two words name, print it, and return whether anything became slower.

    Raises:
        CompareError: There is nothing to compare.
        ResultError: A file is not a result.
    """
    pairing = paired(before, after, folder)
    done = list(_compared(pairing, least))
    if not done:
        raise CompareError("\n".join(pairing.left))
    if as_json:
        found = {"comparisons": [comparison_json(*one) for one in done], "notCompared": pairing.left}
        click.echo(json.dumps(found, indent=1, ensure_ascii=False))
    else:
        _print(done, pairing.left, every=every)
    return any(one.of(Verdict.SLOWER) for one, _before, _after in done)


def paired(before: str, after: str | None, folder: Path) -> Pairing:
    """Return the results that two words name, scenario by scenario.

    Raises:
        CompareError: A word names none, or single ones are of different scenarios.
        ResultError: A file is not a result.
    """
    ours = find(before, folder)
    if after is None:
        return _with_newest(ours, folder)
    theirs, pairing = find(after, folder), Pairing()
    if len(ours) == len(theirs) == 1:
        return Pairing([(next(iter(ours.values())), next(iter(theirs.values())))])
    pairing.pairs = [(one, theirs[name]) for name, one in ours.items() if name in theirs]
    pairing.left = [f"{name}: only one of the two has it" for name in sorted(ours.keys() ^ theirs.keys())]
    return pairing


def _with_newest(ours: dict[str, Found], folder: Path) -> Pairing:
    pairing = Pairing()
    for one in ours.values():
        try:
            pairing.pairs.append((one, newest_after(one, folder)))
        except CompareError as error:
            pairing.left.append(str(error))
    return pairing


def _compared(pairing: Pairing, least: float) -> Iterator[Compared]:
    for one, other in pairing.pairs:
        try:
            yield compare(one.result, other.result, least=least), one, other
        except CompareError as error:
            pairing.left.append(f"{error} ({one.path} and {other.path})")


def _print(done: list[Compared], left: list[str], *, every: bool) -> None:
    console = Console(highlight=False, soft_wrap=False)
    for position, one in enumerate(done):
        if position:
            console.print()
        console.print(shown(*one, every=every))
    for line in left:
        console.print(f"not compared: {line}", markup=False)
