"""The part of the page that is of one result: headline, goals, plots, all figures.  Pure."""

from collections.abc import Iterable, Sequence
from html import escape

from nightwire.benchmarks.report.content.formatting import (
    Entry,
    Result,
    grouped,
    headline,
    machine,
    measure,
    number,
    others,
    ratio,
    spread,
)
from nightwire.benchmarks.report.content.goals import goals
from nightwire.benchmarks.report.plots.over_time import time_plots
from nightwire.benchmarks.report.plots.result import cpu_plot, processes, ratios_plot, series_plot
from nightwire.benchmarks.report.rendering.html import facts, folded, note, table

LONG = 25
"""Rows above which a table is closed at first."""
FIGURES = (("ratio", True), ("figure", False), ("nightwire", True), ("baseline", True), ("spread", False))


def scenario_section(result: Result, place: int) -> str:
    """Return the section of *result*, with its *place* among all sections."""
    parts = [
        f'<section>\n<h2 id="{escape(result["scenario"])}">{place} {escape(result["title"])}</h2>',
        f"<p>{escape(result['measures'])}</p>",
        *map(note, result["notes"]),
        figures_table(headline(result) or result["results"]),
        _goals(result["scenario"]),
        _plots(result),
        _over_time(result),
        _published(result["results"]),
        _circumstances(result),
        _all(result),
        _processes(result),
        "</section>",
    ]
    return "\n".join(part for part in parts if part)


def figures_table(entries: Iterable[Entry]) -> str:
    """Return a table of *entries*, ratios first."""
    return table(FIGURES, map(_row, entries))


def _row(entry: Entry) -> str:
    beside = entry.get("baseline_is")
    about = f'<span class="soft"> beside {escape(beside)}</span>' if beside else ""
    words = escape(spread(entry)).replace("unstable", '<span class="mark">unstable</span>')
    none = " none" if entry["ratio"] is None else ""
    absent = " none" if entry["baseline"] is None else ""
    baseline = measure(entry["baseline"], entry["unit"])
    return (
        f'<tr><td class="n ratio{none}">{ratio(entry)}</td>'
        f'<td class="what">{escape(entry.get("title") or entry["name"])}{about}'
        f"<code>{escape(entry['name'])}</code></td>"
        f'<td class="n" data-label="ours">{measure(entry["value"], entry["unit"])}</td>'
        f'<td class="n{absent}" data-label="baseline">{baseline}</td>'
        f'<td data-label="spread">{words}</td></tr>'
    )


def _goals(scenario: str) -> str:
    run, found = goals(scenario)
    if not found:
        return ""
    rows = (
        f'<tr><td class="what">{escape(one.aim)}</td><td class="wide">{escape(one.seen)}</td>'
        f'<td class="wide">{escape(one.limit)}</td></tr>'
        for one in found
    )
    title = f"<h3>What was aimed at</h3><p>As seen in <code>{escape(run)}</code>.</p>"
    return title + table((("aim", False), ("seen", False), ("what limits it", False)), rows)


def _plots(result: Result) -> str:
    drawn = [
        (ratios_plot(result), "Ratio to the baseline; small dots: single pairs."),
        *((series_plot(one), one["title"]) for one in result["series"] if one["lines"]),
        (cpu_plot(result), "CPU time of each process, mean of our runs."),
    ]
    found = [f"<figure>{svg}<figcaption>{escape(text)}</figcaption></figure>" for svg, text in drawn if svg]
    return f'<div class="plots">\n{"".join(found)}\n</div>' if found else ""


def _over_time(result: Result) -> str:
    found = [
        f"<figure>{svg}<figcaption>{escape(text)}</figcaption></figure>" for svg, text in time_plots(result)
    ]
    if not found:
        return ""
    plots = f'<div class="plots">\n{"".join(found)}\n</div>'
    return "<h3>Over time</h3>\n" + folded(f"{len(found)} plots of what processes took", plots)


def _published(entries: Iterable[Entry]) -> str:
    rows = [
        f'<tr><td class="what">{escape(entry["title"])}</td>'
        f'<td class="n" data-label="ours">{measure(entry["value"], entry["unit"])}</td>'
        f'<td class="n" data-label="theirs">{measure(theirs["value"], entry["unit"])}</td>'
        f'<td class="wide">{escape(theirs["who"])}: {escape(theirs["machine"])}</td></tr>'
        for entry in entries
        if (theirs := entry.get("published"))
    ]
    if not rows:
        return ""
    head = (("figure", False), ("nightwire", True), ("theirs", True), ("whose, and on what", False))
    return (
        "<h3>Beside what others have published</h3>\n"
        '<p class="soft">Other machines and other methods: an orientation, not a comparison.</p>\n'
        + table(head, rows)
    )


def _circumstances(result: Result) -> str:
    said = facts(machine(result))
    if result["others"]["disturbed"]:
        words = escape(others(result))
        said = said.replace(f"<dd>{words}", f'<dd class="mark">{words}')
    return f"<h3>Machine and versions</h3>\n{said}"


def _all(result: Result) -> str:
    if len(headline(result)) in (0, len(result["results"])):
        return ""  # all of them opened the section
    tables = "\n".join(
        (f"<h4>{escape(name)}</h4>\n" if name else "") + figures_table(entries)
        for name, entries in grouped(result["results"])
    )
    count = len(result["results"])
    return "<h3>All figures</h3>\n" + folded(f"{count} figures", tables, closed=count > LONG)


def _processes(result: Result) -> str:
    found = processes(result)
    if not found:
        return ""
    head = (("process", False), ("CPU time of a run", True), ("largest memory", True))
    shared = '\n<p class="soft">Memory that processes share is counted in each of them.</p>'
    rows = table(head, [_process(*row) for row in found]) + shared
    return "<h3>Processes</h3>\n" + folded(f"{len(found)} rows", rows, closed=len(found) > LONG)


def _process(experiment: str, name: str, seconds: float, size: int) -> str:
    cells: Sequence[str] = (
        f'<td class="what">{escape(experiment)}: {escape(name)}</td>',
        f'<td class="n" data-label="CPU">{number(seconds)} s</td>',
        f'<td class="n" data-label="memory">{number(size / 1e6)} MB</td>',
    )
    return f"<tr>{''.join(cells)}</tr>"
