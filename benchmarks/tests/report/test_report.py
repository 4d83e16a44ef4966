"""The page and the tables."""

import re
import subprocess
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from markupsafe import escape

from benchmarks.tests.sample import sample_result
from nightwire.benchmarks.harness.result_files import latest, read_result, results_folder
from nightwire.benchmarks.report import (
    BlockError,
    html_page,
    markdown,
    readme_block,
    rewrite,
    terminal_lines,
)
from nightwire.benchmarks.report.content.formatting import grouped, measure, number, ratio, spread
from nightwire.benchmarks.report.content.goals import goals
from nightwire.benchmarks.report.content.publications import Measured, Ours, Paper, Published, papers
from nightwire.benchmarks.report.content.published_comparison import by_name, drawn, missing, rows
from nightwire.benchmarks.report.plots import largest, pair_ratios, processes, ratios_plot
from nightwire.benchmarks.report.rendering.page import scenario_section
from nightwire.benchmarks.report.rendering.readme import BEGIN, CHOSEN, END, chosen_figures
from nightwire.benchmarks.resources.process_stats import LOOPBACK
from nightwire.benchmarks.scenarios.registry import names, scenario

ROOT = Path(__file__).parents[3]
PHONE = 360  # [px]
ENTRIES = [(paper, entry) for paper in papers() for entry in paper.entries]


def named(pair: tuple[Paper, Published]) -> str:
    """Return what an entry is called in a test's name."""
    return f"{pair[0].key}: {pair[1].number}"


@cache
def page_of(others: float = 0.01) -> str:
    """Return the page of a sample; it takes a second to draw."""
    return html_page([sample_result(others=others)])


class Balance(HTMLParser):
    """Notes which elements were left open."""

    EMPTY = frozenset({"meta", "path", "use", "rect", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        """A closed element."""

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.EMPTY:
            assert self.open.pop() == tag


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.19781, "0.198"),
        (1.0, "1.00"),
        (12.34, "12.3"),
        (123.4, "123"),
        (99.97, "100"),
        (12345.6, "12,346"),
        (1e-7, "1e-07"),
        (-5.5, "-5.50"),
    ],
)
def test_numbers_have_three_digits_that_count(value: float, text: str) -> None:
    assert number(value) == text


def test_a_measure_has_its_unit_unless_it_is_a_share() -> None:
    assert measure(2.5, "ms") == "2.50 ms"
    assert measure(2.5, "1") == "2.50"
    assert measure(None, "s") == "–"


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ({"ratio": 0.0339, "better": "lower", "unit": "µs"}, "29.5 × faster"),
        ({"ratio": 1.78, "better": "higher", "unit": "1/s"}, "1.78 × faster"),
        ({"ratio": 0.514, "better": "lower", "unit": "MB"}, "1.95 × smaller"),
        ({"ratio": 1.42, "better": "lower", "unit": "s"}, "0.704 ×"),
        ({"ratio": 1.0001, "better": "higher", "unit": "1/s"}, "1.00 ×"),
        ({"ratio": 0.0, "better": "lower", "unit": "1"}, "∞ ×"),
        ({"ratio": None, "better": "lower", "unit": "s"}, "–"),
    ],
)
def test_above_one_is_better_whatever_the_figure_is(entry: dict[str, Any], text: str) -> None:
    assert ratio(entry) == text


def test_the_spread_says_what_it_is_worth() -> None:
    entry = {"spread": 0.2, "unstable": True, "runs": 3}
    assert spread(entry) == "± 10% unstable"
    assert spread(entry | {"runs": 1}) == "one run"
    assert spread(entry | {"spread": 0.05, "unstable": False}) == "± 2%"


@pytest.mark.slow
def test_the_page_is_well_formed_and_needs_nothing_else() -> None:
    page = page_of()
    balance = Balance()
    balance.feed(page)
    assert balance.open == []
    assert len(page.encode()) < 3_000_000
    links = re.findall(r'\b(?:src|href)="([^"]+)"', page)
    assert all(link.startswith("#") for link in links)
    assert {link[1:] for link in re.findall(r'<a href="([^"]+)"', page)} <= set(
        re.findall(r' id="([^"]+)"', page)
    )
    assert "@import" not in page
    assert "url(http" not in page


def test_ratios_come_before_values() -> None:
    page = page_of()
    row = page[page.index('id="brief"') :]
    assert row.index("0.500 ×") < row.index("2.00 s") < row.index("1.00 s")
    assert "A sample &lt;walk&gt; &amp; more" in page


def test_a_disturbed_run_is_said_at_the_top_and_beside_the_machine() -> None:
    page, calm = page_of(0.5), page_of()
    assert page.index('class="warning"') < page.index("<h2")
    assert re.search(r'<dd class="mark">[^<]*DISTURBED', page)
    assert "DISTURBED" in page
    assert 'class="warning"' not in calm
    assert "DISTURBED" not in calm


def test_the_page_is_the_same_each_time() -> None:
    assert html_page([sample_result()]) == page_of()


def test_the_markdown_is_a_table_with_its_circumstances() -> None:
    text = markdown([sample_result()])
    assert "| A walk | 0.500 × | 2.00 s | 1.00 s | ± 4% |" in text
    assert "Sample CPU" in text
    assert "10 alerts a run, 2 pairs, quick profile" in text


def test_the_markdown_has_published_numbers_beside_ours() -> None:
    text = markdown([sample_result()])
    assert all(f"### {paper.name}: {paper.title}" in text for paper in papers())
    assert "None of its numbers has one of ours beside it." in text
    kept = markdown(latest(results_folder()))
    assert re.search(
        r"\| Table 1: XML parsing \| [^|]+ × \| [^|]+ × \| [^|]+ µs \| [^|]+ µs \| 99 µs \|", kept
    )


def test_a_terminal_gets_a_line_a_figure() -> None:
    lines = terminal_lines(sample_result())
    assert any(re.search(r"0\.500 × +2\.00 s +1\.00 s .*walk_seconds", line) for line in lines)


def test_the_dots_of_a_share_are_the_ratios_it_is_made_of() -> None:
    result = sample_result()
    assert pair_ratios(result, result["results"][1]) == [2.0, 2.2, 1.9]


def test_processes_are_those_of_our_runs_only() -> None:
    assert processes(sample_result()) == [
        ("steps", "producer", 1.5, 100_000_000),
        ("steps", "kafka", 2.5, 400_000_000),
    ]


def test_figures_stand_under_their_groups_in_order() -> None:
    entries = [{"name": name, "group": group} for name, group in (("a", "x"), ("b", None), ("c", "x"))]
    assert [(name, [one["name"] for one in found]) for name, found in grouped(entries)] == [
        ("x", ["a", "c"]),
        ("", ["b"]),
    ]


def test_of_too_many_experiments_those_that_took_most_are_drawn_in_their_order() -> None:
    found = [("a", "kafka", 1.0, 0), ("b", "kafka", 9.0, 0), ("c", "kafka", 0.5, 0), ("c", "sender", 5.0, 0)]
    assert largest(found, 2) == ["b", "c"]


def test_of_too_many_ratios_those_of_the_headline_are_drawn() -> None:
    result = sample_result()
    share = result["results"][1]
    many = [share | {"name": f"extra_{number}", "headline": False} for number in range(30)]
    drawn = ratios_plot(result | {"results": [*result["results"], *many]})
    assert drawn is not None
    assert drawn == ratios_plot(result | {"results": [one for one in result["results"] if one["headline"]]})


def test_what_failed_in_many_lines_is_told_in_one_and_folded() -> None:
    result = sample_result() | {"notes": ["all well", "it broke:\n  at <here>"]}
    told = scenario_section(result, 1)
    assert told.index("<p>all well</p>") < told.index("<p>it broke:</p>")
    assert told.index("<p>it broke:</p>") < told.index("<details>") < told.index("at &lt;here&gt;")
    assert told[told.index("all well") : told.index("it broke")].count("<details>") == 0
    assert "it broke:" in markdown([result])
    assert "<here>" not in markdown([result])


@cache
def declared(name: str) -> frozenset[str]:
    """Return the names of the figures of a scenario."""
    return frozenset(figure.name for figure in scenario(name).figures)


@cache
def kept_series() -> frozenset[tuple[str, str, str, str]]:
    """Return scenario, title, axis and line of each series in the newest results that are kept."""
    return frozenset(
        (result["scenario"], series["title"], series["x"], line["name"])
        for result in latest(results_folder())
        for series in result["series"]
        for line in series["lines"]
    )


@cache
def kept_processes() -> frozenset[tuple[str, str, str]]:
    """Return scenario, experiment and process of our samples in the newest results kept."""
    return frozenset(
        (result["scenario"], sample["experiment"], process["name"])
        for result in latest(results_folder())
        for sample in result["samples"]
        if sample["kind"] == "subject"
        for process in sample["processes"]
    )


def answers(one: Measured | Ours) -> list[tuple[str, str]]:
    """Return the scenarios and figures that *one* names."""
    if isinstance(one, Ours):
        return [(one.scenario, name) for _x, name in one.figures()]
    return [(one.scenario, one.figure)] if one.figure else []


@pytest.mark.parametrize("pair", ENTRIES, ids=map(named, ENTRIES))
def test_each_published_entry_has_ours_or_a_reason_and_a_source(pair: tuple[Paper, Published]) -> None:
    _paper, entry = pair
    parts = [*entry.measured, *entry.ours]
    ours = [answer for one in parts for answer in answers(one)]
    series = [(one.scenario, one.series, one.axis, one.line) for one in entry.ours if one.series]
    used = [(one.scenario, one.experiment, one.process) for one in entry.measured if one.process]
    recorded = [(one.scenario, one.process) for one in entry.ours if one.process not in ("", LOOPBACK)]
    over_time = any(one.process for one in entry.ours)
    assert bool(ours or series or used or over_time) != bool(entry.reason)
    assert all(figure in declared(name) for name, figure in ours)
    assert set(series) <= kept_series()
    assert set(used) <= kept_processes()
    assert set(recorded) <= {(name, process) for name, _experiment, process in kept_processes()}
    assert all(one.source for one in (entry, *entry.measured, *entry.lines))
    assert all(one.figure or one.process or one.reason or entry.reason for one in entry.measured)
    assert all(one.value is not None or one.figure for one in entry.measured)
    assert all(len(line.x) == len(line.y) for line in entry.lines)
    assert bool(entry.x) == bool(entry.y)
    assert not ((entry.lines or entry.ours) and not entry.x)


def test_no_table_or_figure_of_a_paper_is_forgotten() -> None:
    for paper in papers():
        numbered = [f"Fig. {n}" for n in range(1, paper.figures + 1)]
        numbered += [f"Table {n}" for n in range(1, paper.tables + 1)]
        entered = [entry.number for entry in paper.entries]
        assert len(set(entered)) == len(entered)
        assert {*entered, *paper.without} >= set(numbered), paper.key
        assert not {*entered} & {*paper.without}
        assert {*paper.without} <= set(numbered)
    assert [paper.seed for paper in papers()] == ["000", "001", "002", "003", "004"]


def walked(**changes: Any) -> Measured:
    """Return a published walk of 4 s, and where ours is."""
    walk = Measured("A walk", "s", "section 1", 4.0, scenario="sample", figure="walk_seconds")
    return replace(walk, **changes)


def made_up(**changes: Any) -> Published:
    """Return an entry about the sample's walks."""
    parts: dict[str, Any] = {"measured": (walked(),)} | changes
    return Published("Fig. 1", "Walks", "How long.", "section 1", **parts)


def test_a_published_number_stands_beside_ours_and_its_baseline() -> None:
    (row,) = rows(made_up(), by_name([sample_result()]))
    assert (row.theirs, row.ours, row.baseline, row.to_theirs) == (4.0, 2.0, 1.0, 2.0)
    assert row.entry is not None
    assert row.entry["ratio"] == 2.0


def test_numbers_are_brought_to_the_published_unit() -> None:
    one = walked(value=4.0, unit="ms", scale=1000.0)
    (row,) = rows(made_up(measured=(one,)), by_name([sample_result()]))
    assert (row.ours, row.baseline, row.to_theirs) == (2000.0, 1000.0, 1 / 500)
    (row,) = rows(made_up(measured=(walked(value=None),)), by_name([sample_result()]))
    assert (row.ours, row.theirs, row.to_theirs) == (2.0, None, None)


def test_what_a_process_used_stands_beside_a_published_number() -> None:
    one = walked(figure="", experiment="steps", process="kafka", use="peak_rss_bytes", scale=1e-6, unit="MB")
    (row,) = rows(made_up(measured=(one,)), by_name([sample_result()]))
    assert (row.ours, row.baseline) == (400.0, 400.0)
    assert row.entry is not None
    assert row.entry["ratio"] == 1.0
    (row,) = rows(made_up(measured=(replace(one, process="nobody"),)), by_name([sample_result()]))
    assert row.missing.startswith("not in the quick profile")


RECORDED = {
    "began": 0.0,
    "step": 2.0,
    "runs": [{"experiment": "steps", "kind": "subject", "pair": 0, "begin": 1.0, "end": 4.0}],
    "processes": [
        {"role": "kafka", "quantity": "network_sent", "unit": "byte/s", "values": [2e6, 4e6, None]},
        {"role": "kafka: java", "quantity": "network_sent", "unit": "byte/s", "values": [1e6, None, 6e6]},
    ],
    "metrics": {"begin": 0.0, "step": 1.0, "left_out": 0, "series": []},
    "missing": [],
}


def test_what_the_recorder_has_is_added_up_over_a_run_and_drawn_over_time() -> None:
    one = walked(figure="", experiment="steps", process="kafka", use="network_sent", scale=1e-6, unit="MB")
    entry = made_up(measured=(one,), ours=(Ours("out", "sample", process="kafka", use="network_sent"),))
    (row,) = rows(entry, by_name([sample_result()]))
    assert row.missing == "not recorded in the newest run: nightwire bench run sample"
    result = sample_result() | {"recorded": RECORDED}
    (row,) = rows(entry, by_name([result]))
    assert (row.ours, row.baseline) == (1 * 3.0 + 2 * 4.0, None)
    (found,) = drawn(entry, by_name([result]))
    assert list(zip(found.line.x, found.line.y, strict=True)) == [(1.0, 3e6), (3.0, 4e6), (5.0, 6e6)]
    assert "Over time" in scenario_section(result | {"recorded": RECORDED | {"processes": CPU}}, 1)


CPU = [{"role": "kafka", "quantity": "cpu", "unit": "cores", "values": [0.5, 1.0, 0.7]}]


def test_what_was_not_measured_names_the_command_that_would() -> None:
    (row,) = rows(made_up(), {})
    assert row.missing == "not measured yet: nightwire bench run sample"
    (row,) = rows(made_up(measured=(walked(figure="never_measured"),)), by_name([sample_result()]))
    assert row.missing == "not in the quick profile: nightwire bench run sample --profile full"
    assert missing(made_up(reason="because"), {}) == [("", "because")]
    assert "not measured yet: <kbd>nightwire bench run gateway</kbd>" in page_of()
    assert f"without a result: <kbd>nightwire bench run {' '.join(names())}</kbd>" in page_of()


def test_lines_are_made_of_figures_and_of_series_and_divided_as_in_the_paper() -> None:
    ours = (
        Ours("figures", "sample", "{x}_seconds", x=(3,), labels=("walk",)),
        Ours("series", "sample", series="Delay of a walk", axis="delay [ms]", line="ours"),
        Ours("absent", "sample", "walk_{x}_never", x=(1, 2)),
    )
    found = drawn(made_up(ours=ours), by_name([sample_result()]))
    assert [(one.line.name, list(one.line.x), list(one.line.y)) for one in found] == [
        ("figures", [3], [2.0]),
        ("series", [1.0, 10.0, 100.0], [0.0, 0.5, 1.0]),
    ]
    divided = drawn(made_up(ours=ours[1:2], divided=True), by_name([sample_result()]))
    assert list(divided[0].line.y) == [0.0, 0.05, 0.01]


def test_each_paper_and_each_entry_has_its_place_in_the_page() -> None:
    page = page_of()
    for paper, entry in ENTRIES:
        assert escape(paper.title) in page
        assert escape(f"{entry.number}: {entry.title}") in page
    assert page.index('id="brief"') < page.index('id="swinbank2014"') < page.index('id="sample"')
    assert page.index('id="sample"') < page.index('id="missing"')


def test_what_says_most_is_of_the_scenarios_headlines() -> None:
    for name, chosen in CHOSEN.items():
        headlines = {figure.name for figure in scenario(name).figures if figure.headline}
        assert set(chosen) <= headlines, name
    assert [entry["name"] for entry in chosen_figures(sample_result())] == ["walk_seconds"]


def test_the_readmes_block_is_what_the_newest_results_give() -> None:
    # `nightwire bench report` writes it
    assert readme_block(latest(results_folder())) in (ROOT / "README.md").read_text()


def test_the_block_is_rewritten_in_its_place_and_nowhere_else(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    rewrite(path, [sample_result()])
    text = path.read_text()
    assert text == f"before\n{readme_block([sample_result()])}\nafter\n"
    assert "| A walk | 0.500 × | 2.00 s | 1.00 s (a run) | ± 4% |" in text
    rewrite(path, [sample_result()])
    assert path.read_text() == text
    path.write_text("nothing here\n")
    with pytest.raises(BlockError, match=re.escape(str(path))):
        rewrite(path, [sample_result()])


def seen_on_a_phone(page: Path, folder: Path) -> list[str]:
    """Return what a browser says of *page* in a frame as wide as a phone.

    That is: width, needed width, height, whether all plots are drawn, rows, folded parts that stay
    closed on paper, and what was fetched.  Headless Chromium's window is never narrower than 500
    px, hence the frame; a script in the outer page asks.
    """
    outer = f"""<!doctype html><meta charset="utf-8"><pre id="said"></pre>
      <iframe id="phone" src="{page.as_uri()}" width="{PHONE}" height="800" style="border:0"></iframe>
      <script>document.getElementById("phone").onload = event => {{
        const frame = event.target.contentWindow, page = frame.document, root = page.documentElement;
        const found = [root.clientWidth, root.scrollWidth, root.scrollHeight];
        frame.dispatchEvent(new Event("beforeprint"));
        found.push([...page.querySelectorAll("svg")].every(svg => svg.clientHeight > 100));
        found.push(page.querySelectorAll("tr").length, page.querySelectorAll("details:not([open])").length);
        found.push(frame.performance.getEntriesByType("resource").length);
        document.getElementById("said").textContent = found.join(" ");
      }}</script>"""
    (folder / "outer.html").write_text(outer)
    said = subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files",
         f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=10000", "--dump-dom",
         (folder / "outer.html").as_uri()],
        capture_output=True, text=True, check=True, timeout=120,
    ).stdout  # fmt: skip
    found = re.search(r'<pre id="said">([^<]+)</pre>', said)
    assert found, said[:2000]
    return found[1].split()


@pytest.mark.chromium
@pytest.mark.parametrize(
    "kept",
    [
        pytest.param(False, id="a sample"),
        pytest.param(True, id="the results that are kept", marks=pytest.mark.proof),
    ],
)
def test_a_browser_shows_the_page_on_a_phone_without_scrolling_sideways(tmp_path: Path, kept: bool) -> None:
    page = tmp_path / "report.html"
    page.write_text(html_page(latest(results_folder())) if kept else page_of(0.5))
    width, needed, height, drawn_all, lines, closed, fetched = seen_on_a_phone(page, tmp_path)
    assert int(needed) <= int(width) <= PHONE
    assert int(height) > 1500
    assert drawn_all == "true"
    assert int(lines) > 8
    assert int(closed) == 0
    assert int(fetched) == 0


@pytest.mark.slow
def test_goals_name_a_run_that_is_kept_and_are_shown() -> None:
    shown = [name for name in names() if goals(name)[1]]
    assert shown == [
        "archive",
        "congestion",
        "directory",
        "filters",
        "flows",
        "gateway",
        "multicast",
        "portal",
    ]
    for name in shown:
        run, found = goals(name)
        result = read_result(results_folder() / f"{run}.json")
        assert result["scenario"] == name
        page, text = scenario_section(result, 1), markdown([result])
        assert all(escape(one.aim) in page for one in found)
        assert all(f"| {one.aim} | {one.seen} | {one.limit} |" in text for one in found)
