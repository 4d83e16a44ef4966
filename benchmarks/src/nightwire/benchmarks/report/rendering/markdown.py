"""The tables as Markdown; and as lines, for a terminal."""

from collections.abc import Sequence

from nightwire.benchmarks.report.content.formatting import (
    Result,
    first_line,
    headline,
    machine,
    measure,
    ratio,
    spread,
)
from nightwire.benchmarks.report.content.goals import goals
from nightwire.benchmarks.report.content.publications import papers
from nightwire.benchmarks.report.content.published_comparison import by_name, rows
from nightwire.benchmarks.report.rendering.templates import render


def markdown(results: Sequence[Result]) -> str:
    """Return each scenario's headline table and circumstances, then what others published.

    Of papers it has the numbers beside ours; plots and differences are in the page.
    """
    named = by_name(results)
    compared = [
        {
            "paper": paper,
            "rows": [
                (entry, row) for entry in paper.entries for row in rows(entry, named) if row.ours is not None
            ],
        }
        for paper in papers()
    ]
    return render("report.md.j2", scenarios=list(map(_scenario, results)), papers=compared)


def _scenario(result: Result) -> dict[str, object]:
    run, found = goals(result["scenario"])
    return {
        "result": result,
        "opening": headline(result) or result["results"],
        "baselines": sorted({one["baseline_is"] for one in result["results"] if one.get("baseline_is")}),
        "notes": list(map(first_line, result["notes"])),
        "machine": machine(result),
        "goals_run": run,
        "goals": found,
    }


def terminal_lines(result: Result) -> list[str]:
    """Return all figures of *result*, a line each, ratios first."""
    lines = [f"{result['title']}: times better than the baseline, ours, the baseline's, spread"]
    for entry in result["results"]:
        ours, theirs = (measure(entry[key], entry["unit"]) for key in ("value", "baseline"))
        lines.append(f"  {ratio(entry):>15}  {ours:>13}  {theirs:>13}  {spread(entry):<16} {entry['name']}")
    return [*lines, *(f"  {name}: {value}" for name, value in machine(result))]
