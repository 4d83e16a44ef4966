"""The page and the tables."""

import re
import subprocess
from functools import cache
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import pytest

from benchmarks.tests.sample import sample_result
from nightwire.benchmarks._registry import names
from nightwire.benchmarks._results import read_result, results_folder
from nightwire.benchmarks.report import html_page, markdown, terminal_lines
from nightwire.benchmarks.report._goals import goals
from nightwire.benchmarks.report._plots import largest, pair_ratios, processes, ratios_plot
from nightwire.benchmarks.report._words import grouped, measure, number, spread

PHONE = 390  # [px]


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


def test_the_spread_says_what_it_is_worth() -> None:
    entry = {"spread": 0.2, "unstable": True, "runs": 3}
    assert spread(entry) == "± 10% unstable"
    assert spread(entry | {"runs": 1}) == "one run"
    assert spread(entry | {"spread": 0.05, "unstable": False}) == "± 2%"


def test_the_page_is_well_formed_and_needs_nothing_else() -> None:
    page = page_of()
    balance = Balance()
    balance.feed(page)
    assert balance.open == []
    assert page.count("<svg") == 3
    links = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert all(link.startswith("#") for link in links)
    assert "@import" not in page
    assert "url(http" not in page


def test_ratios_come_before_values() -> None:
    page = page_of()
    row = page[page.index("<tbody>") :]
    assert row.index("2.00 ×") < row.index("2.00 s") < row.index("1.00 s")
    assert "A sample &lt;walk&gt; &amp; more" in page


def test_a_disturbed_run_is_said_at_the_top_and_beside_the_machine() -> None:
    page, calm = page_of(0.5), page_of()
    assert page.index('class="warning"') < page.index("<h2")
    assert "DISTURBED" in page
    assert 'class="warning"' not in calm
    assert "DISTURBED" not in calm


def test_the_page_is_the_same_each_time() -> None:
    assert html_page([sample_result()]) == page_of()


def test_the_markdown_is_a_table_with_its_circumstances() -> None:
    text = markdown([sample_result()])
    assert "| A walk | 2.00 × | 2.00 s | 1.00 s | ± 4% |" in text
    assert "Sample CPU" in text
    assert "10 alerts a run, 2 pairs, quick profile" in text


def test_a_terminal_gets_a_line_a_figure() -> None:
    lines = terminal_lines(sample_result())
    assert any(re.search(r"2\.00 × +2\.00 s +1\.00 s .*walk_seconds", line) for line in lines)


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


@pytest.mark.chromium
def test_a_browser_shows_the_page_on_a_phone_without_scrolling_sideways(tmp_path: Path) -> None:
    # Headless Chromium's window is never narrower than 500 px, so the page is shown inside a frame of the
    # phone's width, and a script in the outer page says what came of it.
    (tmp_path / "report.html").write_text(page_of(0.5))
    outer = f"""<!doctype html><meta charset="utf-8"><pre id="said"></pre>
      <iframe id="phone" src="report.html" width="{PHONE}" height="800" style="border:0"></iframe>
      <script>document.getElementById("phone").onload = event => {{
        const page = event.target.contentDocument, root = page.documentElement;
        const drawn = [...page.querySelectorAll("svg")].every(svg => svg.clientHeight > 100);
        const rows = page.querySelectorAll("tr").length;
        document.getElementById("said").textContent =
          [root.clientWidth, root.scrollWidth, root.scrollHeight, drawn, rows].join(" ");
      }}</script>"""
    (tmp_path / "outer.html").write_text(outer)
    said = subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files",
         f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=10000", "--dump-dom",
         f"file://{tmp_path / 'outer.html'}"],
        capture_output=True, text=True, check=True, timeout=120,
    ).stdout  # fmt: skip
    found = re.search(r'<pre id="said">(\d+) (\d+) (\d+) (\w+) (\d+)</pre>', said)
    assert found, said[:2000]
    width, needed, height, drawn, rows = found.groups()
    assert int(needed) <= int(width) <= PHONE
    assert int(height) > 1500
    assert drawn == "true"
    assert int(rows) > 8


def test_goals_name_a_run_that_is_kept_and_are_shown() -> None:
    shown = [name for name in names() if goals(name)[1]]
    assert shown == ["filters", "gateway"]
    for name in shown:
        run, found = goals(name)
        result = read_result(results_folder() / f"{run}.json")
        assert result["scenario"] == name
        assert all(escape(one.aim) in html_page([result]) for one in found)
        assert all(f"| {one.aim} | {one.seen} | {one.limit} |" in markdown([result]) for one in found)
