"""The site on a page, in a real browser."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from directory.tests.page.browser import Browser
from directory.tests.page.conftest import Served
from directory.tests.sample import HOSTILE, NOW, TOPICS

pytestmark = pytest.mark.chromium

DRAWN = "document.querySelector('.node')"
NAMES = "[...document.querySelectorAll('#graph .node')].map(node => node.getAttribute('aria-label'))"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("chromium")) as one:
        yield one


def complaints(browser: Browser) -> list[str]:
    """Return what the page itself did that it must not: errors, blocked sources, dialogs."""
    named = ("Runtime.exceptionThrown", "Page.javascriptDialogOpening", "Log.entryAdded")
    return [str(event) for event in browser.events if event[0] in named]


def test_streams_writers_and_readers_are_drawn_and_listed(browser: Browser, served: Served) -> None:
    browser.visit(served.url)
    browser.wait(DRAWN)
    names = browser.evaluate(NAMES)
    assert any(re.match(r"alerts\.sim: .*256/s", name) for name in names)
    assert any(name.startswith("ann.reads: ") and "group of 2, 1,234 behind" in name for name in names)
    assert not any(name.startswith("requests.ann") for name in names)
    assert browser.evaluate("document.querySelectorAll('.edge').length") == 13
    cells = browser.evaluate("[...document.querySelectorAll('tbody tr')].map(row => row.innerText)")
    assert any("alerts.lsst" in row and "late" in row and "ingest-lsst" in row for row in cells)
    assert "filters" in browser.evaluate("document.getElementById('processes').innerText")
    assert complaints(browser) == []


def test_a_name_that_means_harm_is_shown_and_does_nothing(browser: Browser, served: Served) -> None:
    browser.visit(served.url)
    browser.wait(DRAWN)
    assert browser.evaluate("document.images.length") == 0
    assert HOSTILE in browser.evaluate("document.getElementById('streams').innerText")
    assert any(HOSTILE in name for name in browser.evaluate(NAMES))
    assert complaints(browser) == []


def test_by_keyboard_a_node_shows_its_neighbours(browser: Browser, served: Served) -> None:
    browser.visit(served.url)
    browser.wait(DRAWN)
    asked = "document.activeElement.getAttribute('aria-label') ?? ''"
    for _ in range(40):
        browser.press("Tab")
        if browser.evaluate(asked).startswith("filter.ann.snr:"):
            break
    near = browser.evaluate(
        "[...document.querySelectorAll('.node.near')].map(n => n.querySelector('text').textContent)"
    )
    assert sorted(near) == ["ann.reads", "ann/snr", "filter.ann.snr", "gateway/bright"]
    with served.rows.batch():
        served.rows.set_topics([*TOPICS[:3], ("filter.ann.snr", 1, 99.0, NOW, None)])
    browser.evaluate("document.onvisibilitychange()")
    browser.wait(
        "document.activeElement.getAttribute('aria-label')?.startsWith('filter.ann.snr: filter, 99/s')"
    )


def test_what_the_site_says_to_itself_is_shown_on_demand(browser: Browser, served: Served) -> None:
    browser.visit(served.url)
    browser.wait(DRAWN)
    browser.evaluate("document.getElementById('own').click()")
    assert browser.evaluate("document.querySelectorAll('.node.topic').length") == len(TOPICS)
    assert browser.evaluate("document.querySelectorAll('tbody tr').length") == len(TOPICS)


def test_it_follows_what_changes_and_says_when_nobody_answers(browser: Browser, served: Served) -> None:
    browser.visit(served.url)
    browser.wait(DRAWN)
    with served.rows.batch():
        served.rows.set_topics([("alerts.ztf", 1, None, None, None)])
    browser.evaluate("document.onvisibilitychange()")
    browser.wait("document.querySelector('.node.topic text')?.textContent === 'alerts.ztf'")
    browser.tell("Network.enable")
    browser.tell(
        "Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0, uploadThroughput=0
    )
    browser.evaluate("document.onvisibilitychange()")
    browser.wait("document.querySelector('#said.away')")
    browser.tell(
        "Network.emulateNetworkConditions",
        offline=False,
        latency=0,
        downloadThroughput=-1,
        uploadThroughput=-1,
    )
    browser.tell("Network.disable")
    browser.events.clear()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [390, 1400])
def test_it_fits_a_phone_and_a_desk(
    browser: Browser, served: Served, width: int, dark: bool, tmp_path: Path
) -> None:
    browser.visit(served.url, width=width, dark=dark)
    browser.wait(DRAWN)
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate("document.getElementById('graph').clientWidth > 0") == (width > 800)
    browser.shot(tmp_path / "page.png")
    assert (tmp_path / "page.png").read_bytes().startswith(b"\x89PNG")
