"""The table as Markdown, for the README; and as lines, for a terminal."""

from collections.abc import Sequence

from nightwire.benchmarks.report._goals import goals
from nightwire.benchmarks.report._words import (
    Entry,
    Result,
    first_line,
    headline,
    machine,
    measure,
    ratio,
    spread,
)

HEAD = "| figure | ratio | nightwire | baseline | spread |\n|---|--:|--:|--:|---|\n"


def markdown(results: Sequence[Result]) -> str:
    """Return the headline table of each of *results*, with its circumstances below."""
    return "<!-- made by `nightwire bench report`; do not edit -->\n" + "\n".join(map(_section, results))


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
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def terminal_lines(result: Result) -> list[str]:
    """Return all figures of *result*, a line each, ratios first."""
    lines = [f"{result['title']}: ratio to the baseline, ours, the baseline's, spread"]
    for entry in result["results"]:
        ours, theirs = (measure(entry[key], entry["unit"]) for key in ("value", "baseline"))
        lines.append(f"  {ratio(entry):>9}  {ours:>13}  {theirs:>13}  {spread(entry):<16} {entry['name']}")
    return [*lines, *(f"  {name}: {value}" for name, value in machine(result))]
