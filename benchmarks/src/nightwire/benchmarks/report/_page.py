"""The report as one HTML page that needs nothing else: style and plots are inside."""

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from nightwire.benchmarks.report._goals import goals
from nightwire.benchmarks.report._plots import cpu_plot, processes, ratios_plot, series_plot
from nightwire.benchmarks.report._words import (
    Entry,
    Result,
    disturbed,
    grouped,
    headline,
    machine,
    measure,
    number,
    others,
    ratio,
    spread,
)

TITLE = "Nightwire: benchmarks"
LONG = 40
"""Rows above which the table of processes is closed at first."""
METHOD = (
    "Subject and baseline run one after the other in alternating pairs (subject, baseline, baseline, "
    "subject, …); warm-up runs are not counted. A ratio is the median of the pairs’ ratios; its spread "
    "is half their interquartile range. Where that range is above 15 % of the median, the figure is "
    "called unstable. A run in which processes of others took more than 5 % of the CPU is called disturbed."
)


def html_page(results: Sequence[Result]) -> str:
    """Return the page of *results*."""
    style = (files("nightwire.benchmarks.report") / "report.css").read_text(encoding="utf-8")
    body = "\n".join(map(_scenario, results))
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{TITLE}</title>\n'
        f"<style>\n{style}</style>\n</head>\n<body>\n<h1>{TITLE}</h1>\n"
        f'<p class="soft">{METHOD}</p>\n{_warning(results)}{body}\n</body>\n</html>\n'
    )


def _warning(results: Sequence[Result]) -> str:
    names = disturbed(results)
    if not names:
        return ""
    return (
        f'<p class="warning">Other processes used the machine while {escape(", ".join(names))} ran: '
        "absolute figures are worse than on an idle machine; ratios suffer less, delays most.</p>\n"
    )


def _scenario(result: Result) -> str:
    parts = [
        f'<section>\n<h2 id="{escape(result["scenario"])}">{escape(result["title"])}</h2>',
        f"<p>{escape(result['measures'])}</p>",
        *(f"<p>{escape(note)}</p>" for note in result["notes"]),
        _table(headline(result) or result["results"]),
        _goals(result["scenario"]),
        _plots(result),
        _published(result["results"]),
        _circumstances(result),
        "<h3>All figures</h3>",
        *(
            (f"<h4>{escape(name)}</h4>" if name else "") + _table(entries)
            for name, entries in grouped(result["results"])
        ),
        _processes(result),
        "</section>",
    ]
    return "\n".join(part for part in parts if part)


def _table(entries: Iterable[Entry]) -> str:
    head = (
        '<tr><th class="n">ratio</th><th>figure</th><th class="n">nightwire</th>'
        '<th class="n">baseline</th><th>spread</th></tr>'
    )
    rows = "\n".join(map(_row, entries))
    return f'<table class="cards">\n<thead>{head}</thead>\n<tbody>\n{rows}\n</tbody>\n</table>'


def _goals(scenario: str) -> str:
    run, found = goals(scenario)
    if not found:
        return ""
    rows = "\n".join(
        f'<tr><td class="what">{escape(one.aim)}</td><td class="wide">{escape(one.seen)}</td>'
        f'<td class="wide">{escape(one.limit)}</td></tr>'
        for one in found
    )
    head = "<tr><th>aim</th><th>seen</th><th>what limits it</th></tr>"
    title = f"<h3>What was aimed at</h3><p>As seen in <code>{escape(run)}</code>.</p>"
    return f'{title}<table class="cards">\n<thead>{head}</thead>\n<tbody>\n{rows}\n</tbody>\n</table>'


def _row(entry: Entry) -> str:
    about = f"<code>{escape(entry['name'])}</code>"
    beside = (
        f'<span class="soft"> beside {escape(entry["baseline_is"])}</span>'
        if entry.get("baseline_is")
        else ""
    )
    words = escape(spread(entry)).replace("unstable", '<span class="mark">unstable</span>')
    none = " none" if entry["ratio"] is None else ""
    absent = " none" if entry["baseline"] is None else ""
    baseline = measure(entry["baseline"], entry["unit"])
    return (
        f'<tr><td class="n ratio{none}">{ratio(entry)}</td>'
        f'<td class="what">{escape(entry.get("title") or entry["name"])}{beside}{about}</td>'
        f'<td class="n" data-label="ours">{measure(entry["value"], entry["unit"])}</td>'
        f'<td class="n{absent}" data-label="baseline">{baseline}</td>'
        f'<td data-label="spread">{words}</td></tr>'
    )


def _plots(result: Result) -> str:
    drawn = [
        (ratios_plot(result), "Ratio to the baseline; small dots: single pairs."),
        *((series_plot(one), one["title"]) for one in result["series"] if one["lines"]),
        (cpu_plot(result), "CPU time of each process, mean of our runs."),
    ]
    figures = [f"<figure>{svg}<figcaption>{escape(text)}</figcaption></figure>" for svg, text in drawn if svg]
    return f'<div class="plots">\n{"".join(figures)}\n</div>' if figures else ""


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
    head = (
        '<tr><th>figure</th><th class="n">nightwire</th><th class="n">theirs</th>'
        "<th>whose, and on what</th></tr>"
    )
    return (
        "<h3>Beside what others have published</h3>\n"
        '<p class="soft">Other machines and other methods: an orientation, not a comparison.</p>\n'
        f'<table class="cards">\n<thead>{head}</thead>\n<tbody>\n{"".join(rows)}\n</tbody>\n</table>'
    )


def _circumstances(result: Result) -> str:
    mark = ' class="mark"' if result["others"]["disturbed"] else ""
    pairs = "".join(
        f"<dt>{escape(name)}</dt><dd{mark if value == others(result) else ''}>{escape(value)}</dd>"
        for name, value in machine(result)
    )
    return f"<h3>Machine and versions</h3>\n<dl>{pairs}</dl>"


def _processes(result: Result) -> str:
    found = processes(result)
    if not found:
        return ""
    rows = "".join(_process(*row) for row in found)
    head = '<tr><th>process</th><th class="n">CPU time of a run</th><th class="n">largest memory</th></tr>'
    closed = "" if len(found) > LONG else " open"
    return (
        f"<h3>Processes</h3>\n<details{closed}><summary>{len(found)} rows</summary>\n"
        f'<table class="cards">\n<thead>{head}</thead>\n<tbody>{rows}</tbody>\n</table>'
        '<p class="soft">Memory that processes share is counted in each of them.</p></details>'
    )


def _process(experiment: str, name: str, seconds: float, size: int) -> str:
    cells: list[Any] = [
        f'<td class="what">{escape(experiment)}: {escape(name)}</td>',
        f'<td class="n" data-label="CPU">{number(seconds)} s</td>',
        f'<td class="n" data-label="memory">{number(size / 1e6)} MB</td>',
    ]
    return f"<tr>{''.join(cells)}</tr>"
