"""The tables as Markdown; and as lines, for a terminal."""

from collections.abc import Sequence

from nightwire.benchmarks.report.content.formatting import (
    Entry,
    Result,
    first_line,
    headline,
    machine,
    measure,
    number,
    published,
    ratio,
    spread,
    table_line,
)
from nightwire.benchmarks.report.content.goals import goals
from nightwire.benchmarks.report.content.publications import Paper, Published, papers
from nightwire.benchmarks.report.content.published_comparison import ComparedRow, Results, by_name, rows

BESIDE = (
    "| published | ratio, here | to theirs | nightwire | baseline, here | published |\n"
    "|---|--:|--:|--:|--:|--:|\n"
)
HEAD = "| figure | ratio | nightwire | baseline | spread |\n|---|--:|--:|--:|---|\n"


def markdown(results: Sequence[Result]) -> str:
    """Return each scenario's headline table and circumstances, then what others published."""
    named = by_name(results)
    parts = [*map(_section, results), *(_paper(paper, named) for paper in papers())]
    return "<!-- made by `nightwire bench report`; do not edit -->\n" + "\n".join(parts)


def _paper(paper: Paper, named: Results) -> str:
    """Return the numbers of *paper* beside ours; plots and differences are in the page."""
    found = [(entry, row) for entry in paper.entries for row in rows(entry, named) if row.ours is not None]
    lines = "".join(table_line(_beside(entry, row)) for entry, row in found)
    table = BESIDE + lines if lines else "None of its numbers has one of ours beside it.\n"
    return f"\n### {paper.name}: {paper.title}\n\n{table}"


def _beside(entry: Published, row: ComparedRow) -> Sequence[str]:
    return (
        f"{entry.number}: {row.title}",
        ratio(row.entry) if row.entry else "–",
        "–" if row.to_theirs is None else f"{number(row.to_theirs)} ×",
        measure(row.ours, row.unit),
        measure(row.baseline, row.unit),
        published(row.theirs, row.unit),
    )


def _section(result: Result) -> str:
    rows = "".join(map(_row, headline(result) or result["results"]))
    facts = "; ".join(f"{name}: {value}" for name, value in machine(result))
    about = sorted({entry["baseline_is"] for entry in result["results"] if entry.get("baseline_is")})
    baseline = f"Baseline, in the same run: {'; '.join(about)}. " if about else ""
    return (
        f"\n### {result['title']} (`{result['scenario']}`)\n\n{HEAD}{rows}\n"
        f"{baseline}Spread: half the interquartile range of the ratio, pair by pair. "
        f"{' '.join(map(first_line, result['notes']))}\n\n{facts}.\n{_goals(result['scenario'])}"
    )


def _goals(scenario: str) -> str:
    run, found = goals(scenario)
    rows = "".join(f"| {one.aim} | {one.seen} | {one.limit} |\n" for one in found)
    return f"\nAs seen in `{run}`:\n\n| aim | seen | what limits it |\n|---|---|---|\n{rows}" if rows else ""


def _row(entry: Entry) -> str:
    cells = (
        entry.get("title") or entry["name"],
        ratio(entry),
        measure(entry["value"], entry["unit"]),
        measure(entry["baseline"], entry["unit"]),
        spread(entry),
    )
    return table_line(cells)


def terminal_lines(result: Result) -> list[str]:
    """Return all figures of *result*, a line each, ratios first."""
    lines = [f"{result['title']}: ratio to the baseline, ours, the baseline's, spread"]
    for entry in result["results"]:
        ours, theirs = (measure(entry[key], entry["unit"]) for key in ("value", "baseline"))
        lines.append(f"  {ratio(entry):>9}  {ours:>13}  {theirs:>13}  {spread(entry):<16} {entry['name']}")
    return [*lines, *(f"  {name}: {value}" for name, value in machine(result))]
