"""What a person is told in Chromium where something is away: nothing yet, no Kafka, no archive."""

import pytest

from conftest import mock_cluster
from directory.tests.page.browser import Browser
from portal.tests.looks import AXE, complaints, serious
from portal.tests.sample import Served, fill, serving

pytestmark = pytest.mark.chromium

SIZES = (1280, 800), (390, 844)
AWAY = "http://127.0.0.1:1"


def shown(browser: Browser, served: Served, path: str, says: str) -> None:
    """Wait until a page says *says* where it is seen, on a desk and on a phone, without a fault."""
    seen = f"[...document.querySelectorAll('.empty, .warning, #trouble, #said')].filter(it => !it.hidden \
        && it.getClientRects().length).some(it => it.textContent.includes({says!r}))"
    browser.visit("about:blank")
    browser.events.clear()
    browser.visit(served.url + path)
    browser.wait(f"document.readyState === 'complete' && location.href !== 'about:blank' && {seen}")
    for width, height in SIZES:
        browser.resize(width, height)
        assert browser.evaluate("document.documentElement.scrollWidth") <= width
        assert not AXE.is_file() or serious(browser) == []
    # an answer that is a refusal is told in the console too
    assert [one for one in complaints(browser) if "the server responded with a status" not in one] == []


def test_before_anything_came_in_pages_say_so(browser: Browser) -> None:
    owner, bootstrap = mock_cluster()
    with serving(bootstrap) as one:
        shown(browser, one, "/", "No alerts yet")
        shown(browser, one, "/find?q=ZTF18abcdef", "Nothing of that name")
    del owner


def test_while_kafka_is_away_pages_say_so(browser: Browser) -> None:
    owner, bootstrap = mock_cluster()
    fill(bootstrap, 3)
    with serving(bootstrap) as one:
        one.until(lambda: len(one.portal.recent) == 8, "the night is read")
        del owner
        one.until(lambda: one.follower.trouble, "Kafka is missed")
        for path in ("/", "/night"):
            shown(browser, one, path, "Kafka")


def test_an_archive_that_is_away_is_named(browser: Browser, bootstrap: str, served: Served) -> None:
    with serving(bootstrap, archive=AWAY) as one:
        one.until(lambda: len(one.portal.recent) == len(served.portal.recent), "the night is read")
        shown(browser, one, "/object/sim/424242", "the archive does not answer")
        shown(browser, one, "/object/sim/1001", "the archive does not answer")
        shown(browser, one, "/find?q=424242", "the archive does not answer")
