"""The report as one HTML page that needs nothing else: style and plots are inside."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nightwire.benchmarks.report.content.formatting import (
    Result,
    circumstances,
    disturbed,
    grouped,
    headline,
    machine,
    short_machine,
)
from nightwire.benchmarks.report.content.goals import goals
from nightwire.benchmarks.report.content.publications import Paper, Published, papers
from nightwire.benchmarks.report.content.published_comparison import (
    PlotLine,
    Results,
    answered,
    by_name,
    drawn,
    missing,
    rows,
)
from nightwire.benchmarks.report.plots import (
    cpu_plot,
    processes,
    published_plot,
    ratios_plot,
    series_plot,
    time_plots,
)
from nightwire.benchmarks.report.rendering.readme import chosen_figures
from nightwire.benchmarks.report.rendering.templates import render
from nightwire.benchmarks.scenarios.registry import names

LONG = 25
"""Rows above which a table is closed at first."""


def html_page(results: Sequence[Result]) -> str:
    """Return the page: what matters, each paper beside ours, each scenario, what is missing."""
    named, read = by_name(results), papers()
    sections = [
        *(paper_section(paper, named, place) for place, paper in enumerate(read, 2)),
        *(scenario_section(result, place) for place, result in enumerate(results, 2 + len(read))),
    ]
    return render(
        "page.html.j2",
        results=results,
        papers=[{"paper": one, "links": [(e, link(one, e)) for e in one.entries]} for one in read],
        counts=_counts(read, named),
        circumstances=circumstances(results),
        disturbed=disturbed(results),
        brief=[entry for result in results for entry in chosen_figures(result)],
        sections=sections,
        absent=[name for name in names() if name not in named],
        gaps=[gap for paper in read for entry in paper.entries for gap in _gaps(paper, entry, named)],
    )


def paper_section(paper: Paper, results: Results, place: int) -> str:
    """Return the section of *paper*, with its *place* among all sections."""
    entries = [_entry(paper, entry, results) for entry in paper.entries]
    return render("paper.html.j2", paper=paper, place=place, entries=entries)


def scenario_section(result: Result, place: int) -> str:
    """Return the section of *result*, with its *place* among all sections."""
    goals_run, found = goals(result["scenario"])
    opening = headline(result) or result["results"]
    plots = [
        (ratios_plot(result), "Times better than the baseline; small dots: single pairs."),
        *((series_plot(one), one["title"]) for one in result["series"] if one["lines"]),
        (cpu_plot(result), "CPU time of each process, mean of our runs."),
    ]
    return render(
        "scenario.html.j2",
        result=result,
        place=place,
        opening=opening,
        goals_run=goals_run,
        goals=found,
        plots=[(svg, caption) for svg, caption in plots if svg],
        time_plots=list(time_plots(result)),
        published=[entry for entry in result["results"] if entry.get("published")],
        machine=machine(result),
        groups=grouped(result["results"]) if len(opening) < len(result["results"]) else [],
        processes=processes(result),
        long=LONG,
    )


def link(paper: Paper, entry: Published) -> str:
    """Return what an entry is linked by."""
    words = f"{paper.key} {entry.number}".lower()
    return "-".join("".join(letter if letter.isalnum() else " " for letter in words).split())


def _counts(read: Sequence[Paper], named: Results) -> Mapping[str, int]:
    entries = [entry for paper in read for entry in paper.entries]
    here, never = sum(answered(one, named) for one in entries), sum(bool(one.reason) for one in entries)
    return {
        "entries": len(entries),
        "answered": here,
        "never": never,
        "open": len(entries) - here - never,
    }


def _entry(paper: Paper, entry: Published, results: Results) -> Mapping[str, Any]:
    lines = drawn(entry, results)
    return {
        "entry": entry,
        "link": link(paper, entry),
        "plot": published_plot(entry, lines),
        "caption": _caption(entry, lines),
        "facts": _facts(entry, results),
        "rows": rows(entry, results),
        "answered": answered(entry, results),
    }


def _caption(entry: Published, lines: Sequence[PlotLine]) -> str:
    sides = {one.side for one in lines}
    if sides == {"theirs"}:
        return f"{entry.number}, theirs, as far as its numbers are given."
    dashed = "; dashed: the baseline, in the same runs" if "baseline" in sides else ""
    if "theirs" not in sides:
        return f"{entry.number}, ours{dashed}; the text has no numbers of theirs."
    return f"{entry.number}; black: as published; coloured: ours{dashed}."


def _facts(entry: Published, results: Results) -> Sequence[tuple[str, str]]:
    """Return sources and methods of theirs, machines and baselines of ours, and what differs."""
    here = [results[name] for name in _scenarios(entry) if name in results]
    beside = [row.entry["baseline_is"] for row in rows(entry, results) if row.entry]
    return (
        ("source", "; ".join(_sources(entry))),
        ("theirs", entry.method),
        ("ours", "; ".join(dict.fromkeys(short_machine(one) for one in here))),
        ("baseline", "; ".join(dict.fromkeys(filter(None, beside)))),
        ("differs", entry.differs),
        ("none of ours", "; ".join(why for what, why in missing(entry, results) if not what)),
    )


def _sources(entry: Published) -> Sequence[str]:
    """Return where the numbers stand, without those that another one begins with."""
    every = dict.fromkeys((entry.source, *(one.source for one in entry.lines)))
    return [one for one in every if not any(other.startswith(one) for other in every if other != one)]


def _scenarios(entry: Published) -> Sequence[str]:
    measured, lines = (one.scenario for one in entry.measured), (one.scenario for one in entry.ours)
    return [name for name in dict.fromkeys((entry.scenario, *measured, *lines)) if name]


def _gaps(paper: Paper, entry: Published, named: Results) -> Iterator[Mapping[str, Any]]:
    """Yield each reason why something of *entry* has none of ours, with all of which it is one."""
    reasons: dict[str, list[str]] = {}
    for what, why in missing(entry, named):
        reasons.setdefault(why, []).append(what)
    for why, whats in reasons.items():
        what = "; ".join(filter(None, dict.fromkeys(whats)))
        yield {"paper": paper, "entry": entry, "link": link(paper, entry), "what": what, "why": why}
