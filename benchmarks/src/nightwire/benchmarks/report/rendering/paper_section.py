"""The part of the page that is of one paper: each of its tables and figures beside ours.  Pure."""

from collections.abc import Sequence
from html import escape

from nightwire.benchmarks.report.content.formatting import measure, number, published, short_machine, spread
from nightwire.benchmarks.report.content.publications import Paper, Published
from nightwire.benchmarks.report.content.published_comparison import (
    ComparedRow,
    PlotLine,
    Results,
    answered,
    drawn,
    missing,
    rows,
)
from nightwire.benchmarks.report.plots.published import published_plot
from nightwire.benchmarks.report.rendering.html import anchor, command, facts, table

HEAD = (
    ("ratio, here", True),
    ("to theirs", True),
    ("measured", False),
    ("nightwire", True),
    ("baseline, here", True),
    ("published", True),
)
ALONE = (("measured", False), ("published", True))


def paper_section(paper: Paper, results: Results, place: int) -> str:
    """Return the section of *paper*, with its *place* among all sections."""
    parts = [
        f'<section class="paper">\n<h2 id="{paper.key}">{place} {escape(_cited(paper))}</h2>',
        f'<p class="soft">{escape(paper.where)}</p>',
        facts((("their machine", paper.machine), ("their method", paper.method), ("differs", paper.differs))),
        *(_entry(paper, entry, results) for entry in paper.entries),
        "</section>",
    ]
    return "\n".join(parts)


def _cited(paper: Paper) -> str:
    return f"{paper.name}: {paper.title}"


def link(paper: Paper, entry: Published) -> str:
    """Return what an entry is linked by."""
    return anchor(paper.key, entry.number)


def _entry(paper: Paper, entry: Published, results: Results) -> str:
    lines = drawn(entry, results)
    plot = published_plot(entry, lines)
    figure = f"<figure>{plot}<figcaption>{_caption(entry, lines)}</figcaption></figure>\n" if plot else ""
    kind = "beside" if plot else "about"
    shows = entry.shows + (f" Axes: {entry.x}; {entry.y}." if entry.x and not plot else "")
    return (
        f'<article>\n<h3 id="{link(paper, entry)}">{escape(entry.number)}: {escape(entry.title)}</h3>\n'
        f'<div class="{kind}">\n{figure}<div><p>{escape(shows)}</p>{_facts(entry, results)}</div>'
        f"\n</div>\n{_table(entry, results)}\n</article>"
    )


def _caption(entry: Published, lines: Sequence[PlotLine]) -> str:
    sides = {one.side for one in lines}
    if sides == {"theirs"}:
        return f"{escape(entry.number)}, theirs, as far as its numbers are given."
    dashed = "; dashed: the baseline, in the same runs" if "baseline" in sides else ""
    if "theirs" not in sides:
        return f"{escape(entry.number)}, ours{dashed}; the text has no numbers of theirs."
    return f"{escape(entry.number)}; black: as published; coloured: ours{dashed}."


def _facts(entry: Published, results: Results) -> str:
    """Say where theirs is from, how it was measured, on what ours was and beside what, and what differs."""
    here = [results[name] for name in _scenarios(entry) if name in results]
    beside = [row.entry["baseline_is"] for row in rows(entry, results) if row.entry]
    return facts(
        (
            ("source", "; ".join(_sources(entry))),
            ("theirs", entry.method),
            ("ours", "; ".join(dict.fromkeys(short_machine(one) for one in here))),
            ("baseline", "; ".join(dict.fromkeys(filter(None, beside)))),
            ("differs", entry.differs),
            ("none of ours", "; ".join(why for what, why in missing(entry, results) if not what)),
        )
    )


def _sources(entry: Published) -> Sequence[str]:
    """Return where the numbers stand, without those that another one begins with."""
    every = dict.fromkeys((entry.source, *(one.source for one in entry.lines)))
    return [one for one in every if not any(other.startswith(one) for other in every if other != one)]


def _scenarios(entry: Published) -> Sequence[str]:
    measured, lines = (one.scenario for one in entry.measured), (one.scenario for one in entry.ours)
    return [name for name in dict.fromkeys((entry.scenario, *measured, *lines)) if name]


def _table(entry: Published, results: Results) -> str:
    found = rows(entry, results)
    if not found:
        return ""
    if entry.reason and not answered(entry, results):
        return table(ALONE, map(_alone, found))
    return table(HEAD, map(_row, found), kind="cards compared")


def _alone(row: ComparedRow) -> str:
    return f'<tr><td class="what">{_what(row)}</td>{_theirs(row)}</tr>'


def _row(row: ComparedRow) -> str:
    if row.ours is None:
        return (
            '<tr><td class="n ratio none">–</td><td class="n none">–</td><td class="what" colspan="3">'
            f'{_what(row)}<span class="missing">{command(row.missing)}</span></td>'
            f"{_theirs(row)}</tr>"
        )
    return (
        f'<tr>{_ratio(row)}<td class="n" data-label="to theirs">{_times(row.to_theirs)}</td>'
        f'<td class="what">{_what(row)}</td>'
        f'<td class="n" data-label="ours">{measure(row.ours, row.unit)}</td>'
        f'<td class="n{" none" if row.baseline is None else ""}" data-label="baseline">'
        f"{measure(row.baseline, row.unit)}</td>"
        f"{_theirs(row)}</tr>"
    )


def _ratio(row: ComparedRow) -> str:
    if row.entry is None or row.entry["ratio"] is None:
        return '<td class="n ratio none">–</td>'
    words = escape(spread(row.entry)).replace("unstable", '<span class="mark">unstable</span>')
    return f'<td class="n ratio">{_times(row.entry["ratio"])}<span class="spread">{words}</span></td>'


def _times(value: float | None) -> str:
    return "–" if value is None else f"{number(value)} ×"


def _what(row: ComparedRow) -> str:
    about = "; ".join(part for part in (row.also, row.source) if part)
    return f'{escape(row.title)}<span class="source">{escape(about)}</span>'


def _theirs(row: ComparedRow) -> str:
    return f'<td class="n" data-label="published">{escape(published(row.theirs, row.unit))}</td>'
