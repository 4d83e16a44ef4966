"""The report as one HTML page that needs nothing else: style and plots are inside."""

from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files

from nightwire.benchmarks.report.content.formatting import Result, circumstances, disturbed
from nightwire.benchmarks.report.content.publications import Paper, Published, papers
from nightwire.benchmarks.report.content.published_comparison import Results, answered, by_name, missing
from nightwire.benchmarks.report.rendering.html import command, facts, table
from nightwire.benchmarks.report.rendering.paper_section import link, paper_section
from nightwire.benchmarks.report.rendering.readme import chosen_figures
from nightwire.benchmarks.report.rendering.scenario_section import figures_table, scenario_section
from nightwire.benchmarks.scenarios.registry import names

TITLE = "Nightwire: benchmarks"
METHOD = (
    "Subject and baseline run one after the other in alternating pairs (subject, baseline, baseline, "
    "subject, …); warm-up runs are not counted. A ratio is ours over the baseline’s, the median of the "
    "pairs’ ratios: for times below 1 is better, for rates above 1. Its spread is half their interquartile "
    "range. Where that range is above 15 % of the median, the figure is called unstable. A run in which "
    "processes of others took more than 5 % of the CPU is called disturbed. A ratio to what somebody "
    "published on another machine, years ago, is an orientation and no comparison."
)
UNFOLD = (
    'addEventListener("beforeprint", () => '
    'document.querySelectorAll("details").forEach(one => { one.open = true; }));'
)
"""Paper cannot be unfolded."""


def html_page(results: Sequence[Result]) -> str:
    """Return the page of *results*: what matters, each paper beside ours, each scenario, what is missing."""
    style = (files("nightwire.benchmarks.report") / "report.css").read_text(encoding="utf-8")
    named, read = by_name(results), papers()
    first = 2 + len(read)
    body = [
        _abstract(results, named, read),
        _contents(results, read),
        _brief(results),
        *(paper_section(paper, named, place) for place, paper in enumerate(read, 2)),
        *(scenario_section(result, place) for place, result in enumerate(results, first)),
        _missing(read, named, first + len(results)),
    ]
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{TITLE}</title>\n'
        f"<style>\n{style}</style>\n<script>{UNFOLD}</script>\n</head>\n<body>\n<h1>{TITLE}</h1>\n"
        f"{_warning(results)}{chr(10).join(body)}\n</body>\n</html>\n"
    )


def _warning(results: Sequence[Result]) -> str:
    others = disturbed(results)
    if not others:
        return ""
    return (
        f'<p class="warning">Other processes used the machine while {escape(", ".join(others))} ran: '
        "absolute figures are worse than on an idle machine; ratios suffer less, delays most.</p>\n"
    )


def _abstract(results: Sequence[Result], named: Results, read: Sequence[Paper]) -> str:
    entries = [entry for paper in read for entry in paper.entries]
    here = sum(answered(entry, named) for entry in entries)
    never = sum(bool(entry.reason) for entry in entries)
    return (
        f'<section class="abstract"><p>{len(results)} scenarios of nightwire, each beside a baseline in the '
        f"same run; and {len(entries)} tables, figures and experiments with measurements of {len(read)} "
        f"publications: {here} have a measurement of ours beside them, on the same axes, "
        f"{len(entries) - here - never} were not measured yet, and {never} have none, for the reasons at the "
        f"end.</p>\n"
        f"{facts(circumstances(results))}\n</section>"
    )


def _contents(results: Sequence[Result], read: Sequence[Paper]) -> str:
    items = [
        '<li><a href="#brief">Results in brief</a></li>',
        *(f'<li><a href="#{paper.key}">{escape(paper.name)}</a>{_parts(paper)}</li>' for paper in read),
        *(f'<li><a href="#{one["scenario"]}">{escape(one["title"])}</a></li>' for one in results),
        '<li><a href="#missing">What is missing, and why</a></li>',
    ]
    return f"<nav><ol>\n{chr(10).join(items)}\n</ol></nav>"


def _parts(paper: Paper) -> str:
    links = (f'<a href="#{link(paper, entry)}">{escape(entry.number)}</a>' for entry in paper.entries)
    return f'<span class="parts">{", ".join(links)}</span>'


def _brief(results: Sequence[Result]) -> str:
    entries = [entry for result in results for entry in chosen_figures(result)]
    return (
        f'<section>\n<h2 id="brief">1 Results in brief</h2>\n{figures_table(entries)}\n'
        f'<p class="soft">{METHOD}</p>\n</section>'
    )


def _missing(read: Sequence[Paper], named: Results, place: int) -> str:
    rows = [row for paper in read for entry in paper.entries for row in _gaps(paper, entry, named)]
    head = (("published", False), ("of it", False), ("why there is none of ours", False))
    return (
        f'<section>\n<h2 id="missing">{place} What is missing, and why</h2>\n{_never_run(named)}'
        f"{table(head, rows)}\n</section>"
    )


def _never_run(named: Results) -> str:
    """Name the scenarios that no result is of."""
    absent = " ".join(name for name in names() if name not in named)
    return (
        f"<p>{command(f'Scenarios without a result: nightwire bench run {absent}')}</p>\n" if absent else ""
    )


def _gaps(paper: Paper, entry: Published, named: Results) -> Iterator[str]:
    """Yield a row for each reason, with all of which it is one."""
    reasons: dict[str, list[str]] = {}
    for what, why in missing(entry, named):
        reasons.setdefault(why, []).append(what)
    for why, whats in reasons.items():
        what = "; ".join(filter(None, dict.fromkeys(whats)))
        yield (
            f'<tr><td class="what"><a href="#{link(paper, entry)}">{escape(paper.name)}, '
            f'{escape(entry.number)}</a></td><td class="wide">{escape(what)}</td>'
            f'<td class="wide">{command(why)}</td></tr>'
        )
