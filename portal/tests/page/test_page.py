"""The pages in a real Chromium: what they show and do, what they must not."""

import base64
import io
import time
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from PIL import Image

from directory.tests.page.browser import Browser
from nightwire.core.kafka import Writer, producer
from nightwire.core.stack import free_port
from nightwire.portal.skymaps import SkymapCache
from portal.tests.looks import AXE, complaints, serious
from portal.tests.sample import HOSTILE, SIM, Served, message, serving, sim_alert
from portal.tests.skymaps.maps import multi_order
from portal.tests.skymaps.test_skymaps import gravitational_wave, hosting

pytestmark = pytest.mark.chromium

PAGES = {
    "live": (
        "/",
        "document.images[0]?.complete && document.getElementById('said').textContent.startsWith('Live:')",
    ),
    "object": ("/object/sim/1001", "document.querySelector('#curve canvas')"),
    "event": (f"/object/voevent/{quote(f'ivo://evil/{HOSTILE}', safe='')}", "document.querySelector('pre')"),
    "find": ("/find?q=10.505+-20.25+r%3D20", "document.querySelector('.near tbody tr')"),
    "sky": ("/sky", "document.querySelector('polygon')"),
    "view": ("/sky/view?ra=10.5&dec=-20.2&fov=5", "document.querySelector('#open, polygon.mark')"),
    "night": ("/night", "document.querySelector('#h-streams')"),
    "api": ("/api", "document.querySelector('tbody')"),
    "lost": ("/object/sim/424242", "document.querySelector('.empty')"),
}
"""Address of each page, and what holds once it is there."""
CONTRAST = {"runOnly": ["color-contrast"]}
"""What a theme changes."""
LOADED = "document.readyState === 'complete' && location.href !== 'about:blank'"


def visit(browser: Browser, served: Served, name: str, **how: int) -> None:
    """Open a page, and wait until it is there."""
    browser.visit("about:blank")
    browser.events.clear()
    path, there = PAGES[name]
    browser.visit(served.url + path, **how)
    browser.wait(f"{LOADED} && ({there})")


@pytest.mark.parametrize("name", PAGES)
def test_each_page_fits_and_does_nothing_else(
    browser: Browser, served: Served, name: str, tmp_path: Path
) -> None:
    visit(browser, served, name, width=1280, height=800)
    for width, height in ((1280, 800), (390, 844)):
        browser.resize(width, height)
        assert browser.evaluate("document.documentElement.scrollWidth") <= width
        browser.shot(tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    asked = [
        event[1]["request"]["url"] for event in browser.events if event[0] == "Network.requestWillBeSent"
    ]
    assert {url for url in asked if not url.startswith((served.url, "about:", "data:"))} == set()
    assert complaints(browser) == []


@pytest.mark.axe
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_serious(browser: Browser, served: Served, name: str) -> None:
    visit(browser, served, name, width=1280, height=800)
    for theme, rules in (("light", {}), ("dark", CONTRAST), ("night", CONTRAST)):
        browser.colours(dark=theme == "dark")
        browser.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        assert (theme, serious(browser, **rules)) == (theme, [])


@pytest.mark.axe
def test_the_sky_view_is_loaded_by_a_click_and_asks_nobody_else(browser: Browser, served: Served) -> None:
    visit(browser, served, "view")
    loaded = "performance.getEntriesByType('resource').map(one => one.name)"
    assert not [url for url in browser.evaluate(loaded) if "aladin" in url]
    browser.evaluate("document.getElementById('open').click()")
    browser.wait("document.getElementById('view-said').textContent.includes('alerts there')")
    assert browser.evaluate("document.querySelectorAll('#view canvas').length") > 0
    asked = [url for url in browser.evaluate(loaded) if not url.startswith((served.url, "data:", "blob:"))]
    assert (asked, complaints(browser)) == ([], [])


def test_what_comes_in_is_put_in_front_until_the_list_is_paused(
    browser: Browser, served: Served, bootstrap: str
) -> None:
    visit(browser, served, "live")
    writer = Writer(producer(bootstrap))

    def come(*numbers: int) -> None:
        for number in numbers:
            writer.write(SIM, message(sim_alert(number)), partition=0, headers=[("survey", b"sim")])
        writer.flush()

    first = "document.querySelector('#rows .name').textContent"
    come(500)
    browser.wait(f"{first} === '1500' && document.querySelector('#rows img').naturalWidth > 100")
    come(*range(501, 700))
    browser.wait(f"{first} === '1699'")
    assert browser.evaluate("document.querySelectorAll('#rows tr').length") <= 100
    browser.evaluate("document.getElementById('pause').click()")
    come(700)
    served.until(lambda: served.portal.recent.named("sim", "700", [SIM]), "it is read")
    assert browser.evaluate(f"[{first}, document.getElementById('said').textContent]") == ["1699", "Paused."]
    browser.evaluate("document.getElementById('pause').click()")
    browser.wait(f"{first} === '1700'")
    turn = "Object.defineProperty(document, 'hidden', {{value: {}, configurable: true}}); " + (
        "document.dispatchEvent(new Event('visibilitychange', {{bubbles: true}}))"
    )
    browser.evaluate(turn.format("true"))
    come(701)
    served.until(lambda: served.portal.recent.named("sim", "701", [SIM]), "it is read")
    browser.wait("!source")
    browser.evaluate(turn.format("false"))
    browser.wait(f"{first} === '1701'")
    assert complaints(browser) == []


@pytest.mark.proof
def test_the_list_keeps_up_with_250_alerts_a_second(
    browser: Browser, served: Served, bootstrap: str, capsys: pytest.CaptureFixture[str]
) -> None:
    visit(browser, served, "live", width=1280, height=800)
    before, written, behind = browser.evaluate("arrived"), 0, []
    writer, start = Writer(producer(bootstrap)), time.monotonic()
    alerts = [message(sim_alert(number)) for number in range(10_000, 10_250)]
    while written < 5000:
        for alert in alerts[written % 250 :][:25]:
            writer.write(SIM, alert, partition=0, headers=[("survey", b"sim")])
        written += 25
        behind.append(written - (browser.evaluate("arrived") - before))
        time.sleep(max(0.0, start + written / 250 - time.monotonic()))
    writer.flush()
    browser.wait(f"arrived - {before} === 5000")
    browser.wait("[...document.images].slice(0, 8).every(one => one.complete && one.naturalWidth > 100)")
    assert browser.evaluate("document.querySelector('#rows .name').textContent") == str(1000 + 10_249)
    assert browser.evaluate("document.querySelectorAll('#rows tr').length") == 100
    assert complaints(browser) == []
    with capsys.disabled():
        print(  # noqa: T201
            f"behind, of 5,000 at 250/s: median {sorted(behind)[len(behind) // 2]}, most {max(behind)} alerts"
        )


@pytest.mark.proof
def test_a_page_of_100_alerts_shows_all_their_stamps(
    browser: Browser, served: Served, bootstrap: str, capsys: pytest.CaptureFixture[str]
) -> None:
    writer = Writer(producer(bootstrap))
    for number in range(20_000, 20_100):
        writer.write(SIM, message(sim_alert(number)), partition=0, headers=[("survey", b"sim")])
    writer.flush()
    served.until(lambda: served.portal.recent.named("sim", "20099", [SIM]), "they are read")
    browser.tell("Network.setCacheDisabled", cacheDisabled=True)
    images = "[...document.querySelectorAll('#rows img')]"
    asked = "performance.getEntriesByType('resource').filter(one => one.name.includes('/api/stamps/'))"
    for said in ("drawn for it", "drawn before"):
        browser.visit("about:blank")
        before = time.process_time()
        browser.visit(f"{served.url}/?survey=sim", width=1280, height=10_000)  # all are in sight
        browser.wait(f"{LOADED} && {images}.every(one => one.complete)")
        cpu = time.process_time() - before
        assert browser.evaluate(f"{images}.filter(one => one.naturalWidth > 100).length") == 100
        assert browser.evaluate(f"{asked}.length") == 100
        painted = browser.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        last = browser.evaluate(f"Math.max(...{asked}.map(one => one.responseEnd))")
        with capsys.disabled():
            print(  # noqa: T201
                f"page_100, {said}: first paint {painted:.0f} ms, stamps {last:.0f} ms; "
                f"CPU of the portal {cpu * 1000:.0f} ms"
            )
    browser.tell("Network.setCacheDisabled", cacheDisabled=False)
    browser.events.clear()


def test_a_light_curve_is_drawn_in_flux_or_magnitude_and_read_as_a_table(
    browser: Browser, served: Served
) -> None:
    visit(browser, served, "object")
    legend = "[...document.querySelectorAll('.u-legend .u-label')].map(one => one.textContent)"
    assert browser.evaluate(legend) == ["MJD", "g limit", "r"]
    for name, value in (("quantity", "flux"), ("dates", "utc")):
        one = f"document.getElementById('{name}')"
        browser.evaluate(f"{one}.value = '{value}'; {one}.onchange()")
    assert browser.evaluate(legend) == ["UTC", "g forced", "r"]
    browser.evaluate("document.getElementById('forced').click()")
    assert browser.evaluate(legend) == ["UTC", "r"]
    assert browser.evaluate("document.querySelectorAll('#numbers tbody tr').length") > 5


def test_a_single_measurement_has_a_day_around_it(browser: Browser, served: Served) -> None:
    browser.visit("about:blank")
    browser.visit(f"{served.url}/object/sim/1099")
    browser.wait(f"{LOADED} && document.querySelector('#curve canvas')")
    assert browser.evaluate("plot.scales.x.max - plot.scales.x.min") == 2


def test_dragging_zooms_and_a_button_shows_the_whole_again(browser: Browser, served: Served) -> None:
    visit(browser, served, "object", width=1280, height=800)
    browser.evaluate("document.getElementById('curve').scrollIntoView()")
    rect = (
        "(r => [r.left, r.top, r.width, r.height])(document.querySelector('.u-over').getBoundingClientRect())"
    )
    box = browser.evaluate(rect)
    ticks = "document.querySelector('canvas').toDataURL()"
    whole = browser.evaluate(ticks)
    for kind, part in (
        ("mousePressed", 0.7),
        ("mouseMoved", 0.8),
        ("mouseMoved", 0.99),
        ("mouseReleased", 0.99),
    ):
        x, y = box[0] + box[2] * part, box[1] + box[3] * 0.5
        browser.tell("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)
    browser.wait(f"{ticks} !== {whole!r}")
    browser.evaluate("document.getElementById('whole').click()")
    browser.wait(f"{ticks} === {whole!r}")


def test_night_mode_is_red_alone_and_stays(browser: Browser, served: Served) -> None:
    visit(browser, served, "live", width=1280, height=800)
    browser.evaluate("document.getElementById('theme').click()")
    visit(browser, served, "object", width=1280, height=800)
    assert browser.evaluate("document.documentElement.dataset.theme") == "night"
    shot = browser.tell("Page.captureScreenshot")
    seen = np.asarray(Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB"))
    assert seen[..., 0].max() > 200
    assert seen[..., 1:].max() == 0
    browser.evaluate("document.getElementById('theme').click()")
    assert browser.evaluate("localStorage.theme") == ""


def test_by_keyboard_the_box_is_reached_and_the_list_is_paused(browser: Browser, served: Served) -> None:
    visit(browser, served, "live")
    browser.press("Tab")
    assert browser.evaluate("document.activeElement.className") == "skip"
    for key in ("/", "p"):
        browser.tell("Input.dispatchKeyEvent", type="keyDown", key=key, text=key)
        browser.tell("Input.dispatchKeyEvent", type="keyUp", key=key)
        if key == "/":
            assert browser.evaluate("document.activeElement.id") == "q"
            browser.evaluate("document.activeElement.blur()")
    assert browser.evaluate("document.getElementById('pause').getAttribute('aria-pressed')") == "true"


def test_without_the_portal_the_live_list_says_so_and_comes_back(browser: Browser, bootstrap: str) -> None:
    port = free_port()
    said = "document.getElementById('trouble').hidden ? '' : document.getElementById('trouble').textContent"
    with serving(bootstrap, port=port) as one:
        browser.visit(one.url)
        browser.wait(f"{LOADED} && source?.readyState === EventSource.OPEN")
    browser.wait(f"({said}).includes('does not answer')")
    with serving(bootstrap, port=port):
        browser.wait(f"({said}) === ''")
    browser.events.clear()


def test_what_is_hidden_is_not_seen(browser: Browser, served: Served) -> None:
    visit(browser, served, "live", width=1280, height=800)
    hidden = "[...document.querySelectorAll('[hidden]')]"
    assert browser.evaluate(f"{hidden}.length") > 1
    assert browser.evaluate(f"{hidden}.filter(one => getComputedStyle(one).display !== 'none').length") == 0


def test_a_skymap_is_put_on_event_and_night_once_it_is_drawn(browser: Browser, bootstrap: str) -> None:
    with hosting() as host, serving(bootstrap, skymaps=SkymapCache([host.name])) as one:
        host.files["/slow"] = 200, multi_order()
        writer = Writer(producer(bootstrap))
        writer.write("voevents", gravitational_wave(77, f"{host.url}/slow"), partition=0)
        writer.flush()
        ivorn = "ivo://gwnet/LVC#S77-1"
        one.until(lambda: one.portal.recent.named("voevent", ivorn, ["voevents"]), "the event is read")
        pages = [f"/object/voevent/{quote(ivorn, safe='')}", "/night"]
        said = "[...document.querySelectorAll('[data-place]')].find(it => it.textContent.includes('deg²'))"
        for at, (width, height) in zip(pages, ((1280, 800), (390, 844)), strict=True):
            browser.visit("about:blank")
            browser.events.clear()
            browser.visit(one.url + at, width=width, height=height)
            browser.wait(f"{LOADED} && document.querySelector('image')")
            if not host.gate.is_set():
                assert browser.evaluate("document.querySelector('image').href.baseVal") == ""
                host.gate.set()
            browser.wait(f"{said}?.querySelector('image').href.baseVal.endsWith('format=png')")
            assert "90% within 362 deg²" in browser.evaluate(f"{said}.textContent")
            drawn = f"fetch({said}.querySelector('image').href.baseVal).then(it => it.blob())"
            assert browser.evaluate(f"{drawn}.then(createImageBitmap).then(it => it.width)") == 1600
            assert browser.evaluate("document.documentElement.scrollWidth") <= width
            asked = [one for one in complaints(browser) if "503 (Service Unavailable)" not in one]
            assert asked == []
            if AXE.is_file():
                assert serious(browser) == []
