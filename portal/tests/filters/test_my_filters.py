"""What an owner does with filters at the portal, and what strangers do not: on one stack."""

import json
import re
import time
from collections.abc import Iterator

import httpx
import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from directory.tests.page.browser import Browser
from nightwire.core.accounting import discrepancies, read_accounts, send_to_dead_letters
from nightwire.core.kafka import Writer, admin, headers_of, producer, read_to_end
from nightwire.core.subscriptions import read_flows
from nightwire.portal.serve.app import FORMS, PAGES
from nightwire.portal.serve.openapi import ENDPOINTS
from nightwire.schemas import records
from nightwire.schemas.serving import TRIES
from nightwire.schemas.topics import DEAD_LETTERS
from portal.tests.filters.conftest import PASSWORDS, Site, follow, sign_in, token_in, write_night
from portal.tests.looks import AXE, complaints, serious
from portal.tests.sample import HOSTILE, SIM, route_url

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(600)]

BRIGHT = "def keep(alert):\n    return alert.snr > 10 and alert.magnitude < 21\n"
SQL = "snr > 10 AND magnitude < 21"


def fill(http: httpx.Client, action: str, text: str = BRIGHT, language: str = "python", **more: str) -> str:
    """Fill in the editor, press one of its buttons, and return the page that comes."""
    form = {"token": token_in(http.get("/filters/new").text), "survey": "sim", "language": language}
    return http.post(
        "/filters/new", data={**form, "text": text, "action": action, "last": "300", **more}
    ).text


def press(http: httpx.Client, name: str, action: str, version: str = "") -> str:
    """Press a button on the page of a filter, and return the page that comes."""
    at = f"/filters/of/{name}"
    token = token_in(http.get(at).text)
    return http.post(at, data={"token": token, "action": action, "version": version}).text


@pytest.fixture(scope="module")
def ann(site: Site) -> Iterator[httpx.Client]:
    """Yield a client of Ann's, who has a filter."""
    with site.browsing("ann") as http:
        assert "is live in version 1" in fill(http, "submit", name="bright", cap="3")
        yield http


@pytest.fixture(scope="module")
def bob(site: Site) -> Iterator[httpx.Client]:
    """Yield a client of Bob's."""
    with site.browsing("bob") as http:
        yield http


def test_a_wrong_password_is_told_and_after_ten_one_waits(site: Site) -> None:
    with httpx.Client(base_url=site.served.url, timeout=60) as http:
        wrong = sign_in(http, "ann", "a guess")
        assert (wrong.status_code, "WWW-Authenticate" in wrong.headers) == (403, False)
        assert "is wrong, or has ended" in wrong.text
        for number in range(TRIES - 1):
            assert http.get("/api/alerts", auth=("ann", PASSWORDS["ann"])).status_code == 200
            assert sign_in(http, f"nobody-{number}", "a guess").status_code == 403
        assert http.get("/api/alerts", auth=("ann", PASSWORDS["ann"])).status_code == 429
        assert sign_in(http, "ann", PASSWORDS["ann"]).status_code == 429
        assert http.get("/api/filters", auth=("ann", "another guess")).status_code == 429
    site.served.portal.authorizer.tries.__init__()  # type: ignore[misc]  # the other tests do not wait


def test_the_cookie_tells_nobody_anything(site: Site) -> None:
    with httpx.Client(base_url=site.served.url, timeout=60) as http:
        done = sign_in(http, "ann", PASSWORDS["ann"])
    cookie = done.headers["Set-Cookie"]
    assert {"httponly", "samesite=lax"} <= set(re.split(r"; ?", cookie))
    assert "password" not in cookie
    assert done.headers["Location"] == "/filters"


def test_a_session_that_ended_is_asked_to_sign_in_again(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    with site.browsing("ann") as http:
        later = time.monotonic() + 3601
        monkeypatch.setattr(site.served.portal.authorizer.sessions, "_clock", lambda: later)
        page = http.get("/filters/of/bright")
    assert page.url == f"{site.served.url}/sign-in?next=/filters/of/bright"


def test_what_no_page_of_ours_sent_is_refused(ann: httpx.Client) -> None:
    at = "/filters/of/bright"
    for form in ({"action": "disable"}, {"action": "disable", "token": "guessed"}):
        assert ann.post(at, data=form).status_code == 403
    for one in [route_url(one.path) for one in ENDPOINTS if one.method == "post"]:
        assert ann.post(one, json={}).status_code == 403, one
        assert ann.post(one, json={}, headers={"X-CSRF-Token": "guessed"}).status_code == 403, one
        assert ann.post(one, data={"version": "1"}).status_code == 415, one
    status = {one: ann.post(route_url(one), data={}).status_code for one in FORMS}
    assert status == dict.fromkeys(FORMS, 403) | {"/shared/{link}": 404}  # this link opens nothing
    assert ann.get(at).status_code == 200


def test_who_gives_no_name_is_asked_for_one_everywhere(site: Site) -> None:
    with httpx.Client(base_url=site.served.url) as http:
        for one in ENDPOINTS:
            given = {"json": {}, "auth": ("ann", "a guess")} if one.method == "post" else {}
            assert http.request(one.method, route_url(one.path), **given).status_code == 401, one.path
        pages = [one for one in PAGES if one not in ("/sign-in", "/sign-out", "/shared/{link}")]
        assert [http.get(route_url(one)).headers["Location"][:8] for one in pages] == ["/sign-in"] * len(
            pages
        )
    site.served.portal.authorizer.tries.__init__()  # type: ignore[misc]  # the other tests do not wait


def test_strangers_see_nothing_of_anothers_filters(site: Site, ann: httpx.Client, bob: httpx.Client) -> None:
    site.served.until(lambda: "filter.ann.bright" in site.served.portal.topics(), "the topic is read")
    assert "/filters/of/bright" not in bob.get("/filters").text
    pages = ("/filters/of/bright", "/filters/new?name=bright", "/?topic=filter.ann.bright")
    assert [bob.get(at).status_code for at in pages] == [404] * 3
    assert bob.get("/api/filters").json() == []
    form = {"token": token_in(bob.get("/filters").text), "action": "disable"}
    assert bob.post("/filters/of/bright", data=form).status_code == 404
    with httpx.Client(base_url=site.served.url) as http:
        assert [http.get(at).status_code for at in pages] == [303] * 3
        assert http.get("/api/filters").status_code == 401
    assert "live" in ann.get("/filters").text


def test_a_link_opens_one_text_to_whoever_has_it(site: Site, ann: httpx.Client) -> None:
    link = re.findall(r'href="(/shared/[^"]+)"', ann.get("/filters/of/bright").text)[0]
    with httpx.Client(base_url=site.served.url) as http:
        page = http.get(link)
        assert "alert.magnitude &lt; 21" in page.text
        assert http.get(link[:-1] + "x").status_code == 404
        assert http.get("/shared/nothing").status_code == 404


def test_a_trial_tells_counts_cost_lane_and_shows_what_passed_and_just_missed(ann: httpx.Client) -> None:
    page = fill(ann, "try")
    assert "7 of 300 alerts pass, 0 failed" in page
    assert "judged in the quick lane" in page
    assert "stopped by line 3: alert.magnitude &lt; 21" in page
    assert (page.count("data:image/jpeg;base64,"), page.count("<svg")) == (15, 15)
    assert "<script>alert" not in page
    assert "<img src=x" not in page


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("def keep(alert):\n    while True: pass\n", "too slow", marks=pytest.mark.proof),
        ("import os\ndef keep(alert):\n    return os.system('id')\n", "os"),
        ("X = open('/etc/passwd').read()\ndef keep(alert):\n    return X\n", "made by running"),
        ("def keep(alert):\n    return " + "(" * 5000 + ")" * 5000, "too many nested parentheses"),
        (f"{HOSTILE}", "This is no filter"),
    ],
)
def test_what_cannot_be_tried_is_told(ann: httpx.Client, text: str, says: str) -> None:
    page = fill(ann, "try", text)
    before, _, after = page.partition('id="editor"')
    assert says in before + after.partition("</form>")[2]
    assert "<script>alert" not in page


def test_names_that_mean_harm_are_texts(ann: httpx.Client) -> None:
    page = fill(ann, "submit", name=HOSTILE)
    assert "is no name here" in page
    assert "<img src=x" not in page
    assert ann.get(f"/filters?q={HOSTILE}").status_code == 200
    assert ann.get("/filters/of/%22%3E%3Cscript%3E").status_code == 404


def test_the_api_does_what_the_pages_do(site: Site) -> None:
    with httpx.Client(base_url=site.served.url, timeout=120, auth=("ann", PASSWORDS["ann"])) as http:
        wish = {"language": "sql", "text": SQL, "survey": "sim"}
        assert http.post("/api/filters/try", json=wish).json()["passed"] > 0
        done = http.post(
            "/api/filters/of/by-api", json={**wish, "cap": 5, "notify": "mailto:ann@example.org"}
        ).json()
        assert (done["accepted"], done["version"]) == (True, 1)
        assert any("goes to mailto:ann@example.org by the flow ann-by-api" in one for one in done["reasons"])
        assert read_flows(site.guarded.bootstrap)["ann-by-api"][0].made_by == "ann"
        assert http.post("/api/filters/of/by-api/do/disable", json={}).json()["accepted"]
        assert http.post("/api/filters/of/by-api/do/explode", json={}).status_code == 400
        assert http.post("/api/filters/of/never/do/enable", json={}).status_code == 422
        found = {one["name"]: one for one in http.get("/api/filters").json()}
        assert found["by-api"]["state"] == "disabled"
        assert http.get("/api/filters/of/by-api").json()["source"] == SQL
        assert [one["kind"] for one in http.get("/api/filters/of/by-api/log").json()] == [
            "accepted",
            "asked",
        ] * 2
        assert http.get("/api/filters/of/by-api/overflow").json() == []
        names = {one["name"]: one["unit"] for one in http.get("/api/filters/names?survey=sim").json()}
        assert (names["magnitude"], names["diaSource.ra"]) == ("mag", "deg")
        assert http.post("/api/filters/try", json={**wish, "last": 10**6}).status_code == 400
        assert http.post("/api/filters/try", json={**wish, "cap": "many"}).status_code == 400
        assert http.post("/api/filters/try", json={**wish, "survey": "nothing"}).status_code == 422
        for odd in ({"language": ["sql"]}, {"radius": 10**400}):
            assert http.post("/api/filters/try", json={**wish, **odd}).status_code == 400
        half, kind = b'{"take_back": "\\ud800"}', {"Content-Type": "application/json"}  # of a character
        assert http.post("/api/filters/of/by-api/comments", content=half, headers=kind).status_code == 422
        near = {**wish, "text": "snr > 1", "targets": "ra,dec\n10.75,-20.25\n", "last": 300}
        assert http.post("/api/filters/try", json=near).json()["passed"] == 1


@pytest.mark.chromium
def test_a_thousand_filters_are_listed_by_the_hundred(
    site: Site, browser: Browser, ann: httpx.Client, bob: httpx.Client
) -> None:
    kept = {m.key(): m.value() for m in read_to_end(site.guarded.bootstrap, ["filters"])}
    version, pointer = (records.FILTER.decode(kept[key] or b"") for key in (b"ann/bright/1", b"ann/bright"))
    writer = Writer(producer(site.guarded.bootstrap))
    for number in range(1000):
        own = {"owner": "bob", "name": f"f{number:03}", "live": False}
        for key, record in ((f"bob/f{number:03}/1", version), (f"bob/f{number:03}", pointer)):
            writer.write("filters", records.FILTER.encode({**record, **own}), key=key.encode())
    writer.flush()
    page = bob.get("/filters").text
    assert "1,000 filters, page 1 of 10" in page
    assert page.count('<tr><th scope="row">') == 100
    assert 'href="/filters/of/f199"' in bob.get("/filters?page=1").text
    assert "1 filter<" in bob.get("/filters?q=f777").text
    assert "f001" not in ann.get("/filters").text
    browser.tell("Network.clearBrowserCookies")
    enter(site, browser, "bob")
    for width, height in ((1280, 800), (390, 844)):
        browser.resize(width, height)
        assert browser.evaluate("document.querySelectorAll('tbody tr').length") == 100
        assert browser.evaluate("document.documentElement.scrollWidth") <= width
    browser.tell("Network.clearBrowserCookies")


@pytest.mark.chromium
def test_a_wrong_password_is_told_where_it_was_written(site: Site, browser: Browser) -> None:
    browser.tell("Network.clearBrowserCookies")
    browser.visit(f"{site.served.url}/filters", width=390, height=844)
    follow(browser, "location.pathname === '/sign-in' && document.readyState === 'complete'")
    send_login(browser, "bob", "a guess")
    follow(browser, "document.querySelector('.warning')?.textContent.includes('is wrong')")
    assert browser.evaluate("document.querySelector('[name=name]').value") == "bob"
    assert browser.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_watchlist_comes_as_a_file_and_what_is_wrong_with_it_is_told_by_its_line(ann: httpx.Client) -> None:
    form = {
        "token": token_in(ann.get("/filters/new").text),
        "language": "sql",
        "survey": "sim",
        "name": "near",
    }
    form |= {"text": "snr > 10", "action": "submit", "radius": "3", "choice": "first"}

    def sent(file: bytes, **more: str) -> str:
        files = {"targets": ("my targets.csv", file, "text/csv")}
        return ann.post("/filters/new", data=form | more, files=files).text

    assert "line 3: ra 1, dec 95 is no position" in sent(b"ra,dec\n1,2\n1,95\n").replace("&#39;", "'")
    assert "no column looks like right ascensions" in sent(b"x,y\n1,2\n")
    assert "radius=" in sent(b"ra,dec\n1,2\n", radius="wide")
    tried = sent(b"ra,dec\n10.75,-20.25\n", action="try", text="snr > 1", last="300")
    assert [one.split()[0] for one in re.findall(r"(\d+ of \d+ alerts) pass", tried)] == ["1"]
    page = sent(b"ra,dec,label\n10.55,-20.25,mine\n,,nowhere\n")
    assert "near</a> is live in version 1" in page
    assert "1 rows without a position are left out (lines 3)" in page
    assert ann.get("/api/filters/of/near").json()["source"] == (
        "MATCH('ann/near', 3.0) IS NOT NULL AND (snr > 10)"
    )
    assert "near</a> is live in version 2" in sent(b"ra,dec\n1,2\n", text=" ")
    assert ann.get("/api/filters/of/near").json()["source"] == "MATCH('ann/near', 3.0) IS NOT NULL"


def test_a_brokers_stream_is_lighter_as_its_owner_wishes(ann: httpx.Client) -> None:
    wish = {"name": "lite", "output": "broker.ann.lite", "lite": "1", "drop": "diaSource.ra, diaSource.dec"}
    text = 'ADDS = {"score": float}\n\n\ndef keep(alert):\n    return True\n\n\n'
    text += 'def transform(alert):\n    return {"score": 0.5}\n'
    page = fill(ann, "submit", text, transform="transform", **wish)
    assert "lite</a> is live in version 1" in page, page
    shown = ann.get("/filters/of/lite").text
    assert "drops diaSource.ra, diaSource.dec, cutout" in shown
    assert "adds score (float), by transform" in shown
    assert "no field nothing in these alerts" in fill(
        ann, "submit", name="no", output="broker.ann.no", drop="nothing"
    )
    assert 'value="broker.ann.lite"' in ann.get("/filters/new?name=lite").text


def press_past(http: httpx.Client, name: str, **form: str) -> str:
    """Press a button of a filter's backfill, and return the page that comes."""
    token = token_in(http.get(f"/filters/of/{name}").text)
    return http.post(f"/filters/of/{name}", data={"token": token, **form}).text


def test_a_backfill_is_asked_for_since_a_date(ann: httpx.Client) -> None:
    assert "lies in the future" in press_past(ann, "bright", action="backfill", since="2199-01-01T00:00")
    assert "write a duration" in press_past(ann, "bright", action="backfill", since="yesterday")
    assert "no backfill of ann/bright runs" in press_past(ann, "bright", action="stop-backfill")


@pytest.mark.proof  # it takes its time beside the stream
def test_the_past_is_judged_since_a_date(site: Site, ann: httpx.Client) -> None:
    assert "live in version 1" in fill(ann, "submit", name="late")
    assert "Done: version 2" in press_past(ann, "late", action="backfill", since="2026-01-01T00:00")
    write_night(site.guarded.bootstrap)  # a batch, with which the new version is live
    site.served.until(lambda: "backfill ended: " in ann.get("/filters/of/late").text, "the past is judged")
    assert ">Stop it<" not in ann.get("/filters/of/late").text


def test_who_has_the_link_reads_comments_and_owners_write_them(
    site: Site, ann: httpx.Client, bob: httpx.Client
) -> None:
    at = "/filters/of/bright"
    link = re.findall(r'href="(/shared/[^"]+)"', ann.get(at).text)[0]
    token = token_in(bob.get(link).text)
    page = bob.post(
        link, data={"token": token, "action": "comment", "text": f"too many stars {HOSTILE}"}
    ).text
    assert "too many stars &#34;&gt;&lt;img" in page
    assert "<img src=x" not in page
    assert bob.post(link, data={"action": "comment", "text": "forged"}).status_code == 403
    assert "too many stars" in ann.get(at).text
    assert ">Take back<" not in ann.get(at).text
    (said,) = ann.get("/api/filters/of/bright/comments").json()
    assert said["author"] == "bob"
    form = {"token": token_in(ann.get(at).text), "action": "take-back", "comment": said["id"]}
    assert ann.post(at, data=form).status_code == 422  # it is Bob's
    with httpx.Client(base_url=site.served.url) as http:
        page = http.get(link).text
        assert "too many stars" in page
        assert "Sign in</a> to comment" in page
        form = {"token": token_in(page), "action": "comment", "text": "from nowhere"}
        assert http.post(link, data=form).status_code in (303, 403)
    nowhere = bob.post(
        "/api/filters/of/brigth/comments?owner=ann", json={"text": "?"}, auth=("bob", PASSWORDS["bob"])
    )
    assert (nowhere.status_code, nowhere.json()["message"]) == (
        422,
        "ann has no filter brigth; did you mean bright?",
    )
    back = {"token": token, "action": "take-back", "comment": said["id"]}
    assert "too many stars" not in bob.post(link, data=back).text
    assert bob.post(link, data={"token": token, "action": "comment", "text": " "}).status_code == 422
    for _ in range(8):
        assert bob.post(link, data={"token": token, "action": "comment", "text": "again"}).status_code == 200
    assert (
        "10 comments a minute are enough"
        in bob.post(link, data={"token": token, "action": "comment", "text": "again"}).text
    )
    old = AclBindingFilter(
        ResourceType.TOPIC, "comments.ann", ResourcePatternType.MATCH, "User:ann", None,  # type: ignore[arg-type]
        AclOperation.ANY, AclPermissionType.ANY,
    )  # fmt: skip
    operator = admin(site.guarded.bootstrap)
    for taken in operator.delete_acls([old]).values():
        assert taken.result()
    comments = "/api/filters/of/bright/comments"
    site.served.until(lambda: ann.get(comments).status_code == 403, "the right is gone")
    assert "`nightwire user add ann`" in ann.get(at).text
    assert site.guarded.run("user", "add", "ann").exit_code == 0
    site.served.until(lambda: ann.get(comments).status_code == 200, "what is missing is given")


@pytest.mark.chromium
def test_a_filter_is_written_tried_submitted_and_passes_alerts(site: Site, browser: Browser) -> None:
    enter(site, browser)
    browser.visit(f"{site.served.url}/filters/new")
    follow(browser, "document.querySelector('#code[data-ready]')")
    write(browser, "snr > 10 AND magn")
    choose(browser, "language", "sql")
    browser.tell("Input.insertText", text="i")
    inside = "document.getElementById('code').shadowRoot"
    offered = f"{inside}.querySelector('.cm-tooltip-autocomplete')"
    follow(browser, f"{offered}?.textContent.includes('magnitude[mag]')")
    mouse = "new MouseEvent('mousedown', {bubbles: true, button: 0})"
    browser.evaluate(f"{offered}.querySelector('li').dispatchEvent({mouse})")
    follow(browser, f"{inside}.querySelector('.cm-content').textContent === 'snr > 10 AND magnitude'")
    browser.tell("Input.insertText", text=" < 21")
    press_button(browser, "try")
    follow(browser, "document.getElementById('h-tried')?.textContent.includes('of 200 alerts pass')")
    follow(browser, "[...document.querySelectorAll('.alerts img')].every(one => one.naturalWidth > 100)")
    browser.evaluate("document.querySelector('[name=name]').value = 'seen'")
    press_button(browser, "submit")
    follow(browser, "document.querySelector('.said')?.textContent.includes('live in version 1')")
    write_night(site.guarded.bootstrap)
    site.served.until(lambda: "filter.ann.seen" in site.served.portal.recent.topics, "alerts passed")
    browser.visit(f"{site.served.url}/?topic=filter.ann.seen")
    follow(browser, "document.querySelectorAll('#rows tr').length >= 7")
    assert complaints(browser) == []


@pytest.mark.chromium
def test_versions_are_compared_rolled_back_and_disabled(
    site: Site, browser: Browser, ann: httpx.Client
) -> None:
    assert "live in version 2" in fill(ann, "submit", BRIGHT.replace("21", "20.5"), name="bright")
    enter(site, browser)
    browser.visit(f"{site.served.url}/filters/of/bright")
    follow(browser, "document.querySelector('.more')")
    changed = browser.evaluate("[...document.querySelectorAll('.changes .more')].at(-1).textContent")
    assert changed.endswith("< 20.5")
    browser.visit(f"{site.served.url}/filters/of/bright?version=1")
    follow(browser, "document.querySelector('[value=rollback]')")
    press_button(browser, "rollback")
    follow(browser, "document.querySelector('.said')?.textContent.includes('version 1')")
    browser.visit(f"{site.served.url}/filters/of/bright")
    follow(browser, "document.querySelector('[value=disable]')")
    assert browser.evaluate("document.querySelector('[value=rollback]')") is None  # it is the live one
    press_button(browser, "disable")
    follow(browser, "document.querySelector('[value=enable]')")
    assert "disabled" in browser.evaluate("document.querySelector('main').textContent")


@pytest.mark.chromium
@pytest.mark.axe
@pytest.mark.parametrize("theme", ["light", "night"])
@pytest.mark.parametrize("at", ["/sign-in", "/filters", "/filters/of/bright", "/filters/new"])
def test_axe_finds_nothing_serious(
    site: Site, browser: Browser, ann: httpx.Client, at: str, theme: str
) -> None:
    enter(site, browser)
    browser.visit(f"{site.served.url}{at}", width=1280, height=800)
    follow(browser, f"location.pathname === '{at}' && document.readyState === 'complete'")
    browser.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
    assert serious(browser) == []


@pytest.mark.chromium
def test_pages_fit_a_phone_and_without_scripts_the_editor_is_a_field(
    site: Site, browser: Browser, ann: httpx.Client
) -> None:
    enter(site, browser)
    for at in ("/sign-in", "/filters", "/filters/of/bright", "/filters/new"):
        browser.visit(f"{site.served.url}{at}", width=390, height=844)
        follow(browser, f"location.pathname === '{at}' && document.readyState === 'complete'")
        assert browser.evaluate("document.documentElement.scrollWidth") <= 390
    assert 'textarea id="text"' in ann.get("/filters/new").text


def buried(site: Site, *letters: tuple[str, str]) -> list[int]:
    """Bury letters, each by its source and reason; return their numbers."""
    writer = Writer(producer(site.guarded.bootstrap))
    for source, reason in letters:
        send_to_dead_letters(writer, b"bad", stage="filters", source=source, reason=reason)
    writer.flush()
    held = [one.offset() or 0 for one in read_to_end(site.guarded.bootstrap, [DEAD_LETTERS])]
    return held[-len(letters) :]


def copies(site: Site, numbers: list[int]) -> list[int]:
    """Return the numbers of the dead letters that came to the survey again."""
    back = [headers_of(one).get("dead-letter") for one in read_to_end(site.guarded.bootstrap, [SIM])]
    return sorted(number for number in map(int, filter(None, back)) if number in numbers)


@pytest.fixture(scope="module")
def olga(site: Site) -> Iterator[httpx.Client]:
    """Yield a client of an operator's: Kafka lets her read dead letters and send them back."""
    rights = {DEAD_LETTERS: ["READ"], "accounts": ["READ", "WRITE"], SIM: ["READ", "WRITE"]}
    client = admin(site.guarded.bootstrap)
    made = client.create_acls(
        [
            AclBinding(
                ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, "User:olga", "*",
                AclOperation[operation], AclPermissionType.ALLOW,
            )
            for topic, operations in rights.items()
            for operation in operations
        ]
    )  # fmt: skip
    for one in made.values():
        one.result(60)
    with site.browsing("olga") as http:
        yield http


def test_an_operator_replays_one_dead_letter_or_all_of_a_reason_once(site: Site, olga: httpx.Client) -> None:
    sources = (f"{SIM}[0]@1", f"{SIM}[0]@2", "/data/night.avro", "requests.bob[0]@0")
    numbers = buried(site, *((source, HOSTILE) for source in sources), (f"{SIM}[0]@3", "another"))
    page = olga.get("/night").text
    token = token_in(page[page.index("h-letters") :])
    form = {"token": token, "number": str(numbers[0]), "action": "one"}
    assert "Replayed 1 dead letter." in olga.post("/night", data=form).text
    again = olga.post("/night", data=form).text
    assert "Replayed 0 dead letters." in again
    assert f"dead letter {numbers[0]} was replayed before" in again
    alike = olga.post("/night", data={**form, "action": "alike"}).text
    assert "Replayed 1 dead letter." in alike
    for number, why in ((numbers[2], "which is no topic"), (numbers[3], "requests.bob")):
        assert re.search(rf"dead letter {number}\b[^<]*{why}", alike), alike
    assert "<script>alert" not in alike
    assert copies(site, numbers) == numbers[:2]
    lines = discrepancies(read_accounts(site.guarded.bootstrap))
    assert not [one for one in lines if one.startswith("dead-letters")]


@pytest.mark.chromium
def test_a_button_asks_first_and_a_page_sent_twice_replays_once(
    site: Site, olga: httpx.Client, browser: Browser
) -> None:
    (number,) = buried(site, (f"{SIM}[0]@5", HOSTILE))
    site.served.until(lambda: f">{number}</th>" in olga.get("/night").text, "the letter is shown")
    browser.tell("Network.clearBrowserCookies")
    enter(site, browser, "olga")
    browser.visit(f"{site.served.url}/night", width=390, height=844)
    rows = "[...document.querySelectorAll('#h-letters + div tbody tr')]"
    row = f"{rows}.find(one => one.cells[0].textContent === '{number}')"
    follow(browser, f"document.readyState === 'complete' && {row}")
    button = f"{row}.querySelector('button[value=one]')"
    assert browser.evaluate(f"{button}.checkVisibility()") is False
    browser.evaluate(f"{row}.querySelector('td:last-child summary').click()")
    assert browser.evaluate(f"[{button}.checkVisibility(), {button}.textContent]") == [
        True,
        f"Yes, send it to {SIM}",
    ]
    if AXE.is_file():
        assert serious(browser) == []
    browser.evaluate(f"{button}.click()")
    follow(browser, "document.getElementById('done')?.textContent.includes('Replayed 1 dead letter.')")
    assert browser.evaluate(f"{row}.cells[5].textContent") == "replayed"
    browser.tell("Page.reload")  # the form goes once more
    follow(browser, "document.getElementById('done')?.textContent.includes('Replayed 0 dead letters.')")
    assert browser.evaluate("document.querySelector('#done .warning').textContent").startswith(
        f"dead letter {number} was replayed before"
    )
    if AXE.is_file():
        assert serious(browser) == []
    assert copies(site, [number]) == [number]
    browser.tell("Network.clearBrowserCookies")


def test_who_may_not_account_for_it_replays_nothing(
    site: Site, ann: httpx.Client, olga: httpx.Client
) -> None:
    (number,) = buried(site, (f"{SIM}[0]@4", "another"))
    at, form = f"/api/dead-letters/{number}/replay", {"number": str(number), "action": "one"}
    assert 'action="/night"' not in ann.get("/night").text
    token = token_in(ann.get("/filters/new").text)
    assert ann.post("/night", data={**form, "token": token}).status_code == 403
    named = ann.post(at, json={}, auth=("ann", PASSWORDS["ann"]))
    assert (named.status_code, "operators replay" in named.text) == (403, True)
    assert httpx.post(f"{site.served.url}{at}", json={}, timeout=60).status_code in (401, 403)
    assert olga.post("/night", data=form).status_code == 403  # no page of ours sent it
    assert copies(site, [number]) == []
    key = ("olga", PASSWORDS["olga"])
    done = olga.post(at, json={}, auth=key).json()
    assert ([one["number"] for one in done["replayed"]], done["refused"]) == ([number], [])
    assert olga.post(at, json={}, auth=key).status_code == 422
    assert olga.post("/api/dead-letters/424242/replay", json={}, auth=key).status_code == 404
    assert copies(site, [number]) == [number]


def enter(site: Site, browser: Browser, name: str = "ann") -> None:
    """Sign in, unless somebody is."""
    browser.events.clear()
    browser.visit(f"{site.served.url}/filters")
    follow(
        browser, "['/filters', '/sign-in'].includes(location.pathname) && document.readyState === 'complete'"
    )
    if browser.evaluate("location.pathname") == "/sign-in":
        send_login(browser, name, PASSWORDS[name])
        follow(browser, "location.pathname === '/filters' && document.readyState === 'complete'")


def send_login(browser: Browser, name: str, password: str) -> None:
    """Fill in the page that asks who is there, and send it."""
    for field, text in (("name", name), ("password", password)):
        browser.evaluate(f"document.querySelector('[name={field}]').value = {json.dumps(text)}")
    browser.evaluate("document.querySelector('form.card button').click()")


def write(browser: Browser, text: str) -> None:
    """Replace what stands in the editor."""
    browser.evaluate("document.getElementById('code').shadowRoot.querySelector('.cm-content').focus()")
    browser.evaluate("document.execCommand('selectAll')")
    browser.tell("Input.insertText", text=text or " ")


def choose(browser: Browser, name: str, value: str) -> None:
    """Choose in a list of the editor's form."""
    one = f"document.getElementById('editor').elements.{name}"
    browser.evaluate(f"{one}.value = '{value}'; {one}.dispatchEvent(new Event('change'))")


def press_button(browser: Browser, value: str) -> None:
    """Press the button that has a value."""
    browser.evaluate(f"document.querySelector('button[value={value}]').click()")
