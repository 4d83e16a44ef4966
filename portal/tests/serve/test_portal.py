"""Pages and API of the sample night."""

import html
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from urllib.parse import quote

import httpx
import pytest

from conftest import mock_cluster
from nightwire.core.kafka import Writer, producer
from nightwire.portal.account import RateLimiter
from nightwire.portal.model.formatting import python_lines
from nightwire.portal.serve.app import FORMS, PAGES
from nightwire.portal.serve.openapi import ENDPOINTS
from nightwire.schemas.serving import KafkaAccess
from portal.tests.sample import FILTER, HOSTILE, SIM, WRITTEN, Served, message, route_url, serving, sim_alert


@pytest.fixture(scope="module")
def http(served: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=served.url, timeout=60) as client:
        yield client


def test_the_list_shows_what_came_in_newest_first(http: httpx.Client) -> None:
    rows = http.get("/api/alerts").json()["alerts"]
    assert len(rows) == WRITTEN - 1  # what a filter passed is a list of its own
    assert [row["number"] for row in rows] == sorted((row["number"] for row in rows), reverse=True)
    page = http.get("/").text
    assert page.count("/api/stamps/alerts.sim/") == 22
    assert "1,001" not in page
    assert ">1001</a>" in page


def test_lists_are_chosen_by_survey_filter_and_page(http: httpx.Client) -> None:
    (event, *_) = http.get("/api/alerts?survey=voevent").json()["alerts"]
    assert (event["survey"], event["topic"]) == ("voevent", "voevents")
    (passed,) = http.get(f"/api/alerts?topic={FILTER}").json()["alerts"]
    assert (passed["id"], passed["source"]) == ("1", SIM)
    first = http.get("/api/alerts?survey=sim&most=5").json()["alerts"]
    older = http.get(f"/api/alerts?survey=sim&most=5&before={first[-1]['number']}").json()["alerts"]
    assert [row["number"] for row in older] == [row["number"] - 5 for row in first]


def test_an_object_has_its_alerts_filters_and_light_curve(http: httpx.Client) -> None:
    found = http.get("/api/object/sim/1001").json()
    assert [row["id"] for row in found["alerts"]] == ["21", "1"]
    assert [one["kind"] for one in found["curve"]].count("forced") == 1
    assert found["missing"] == ""
    page = http.get("/object/sim/1001?alert=1").text
    assert FILTER in page
    assert '<option value="1" selected>' in page
    assert "10:42:" in page or "00:42:" in page
    assert http.get("/api/object/sim/21").json()["alerts"][0]["object"] == "1001"  # an alert's id is enough


def test_the_lines_of_python_fetch_the_same(
    http: httpx.Client, served: Served, bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", bootstrap)
    (row, *_) = served.portal.recent.named("sim", "1001", [SIM])
    page = http.get("/object/sim/1001").text
    lines = python_lines(row, served.url)
    assert html.escape(lines, quote=True) in page.replace("&#34;", "&quot;").replace("&#39;", "&#x27;")
    ids: list[object] = []
    lines = lines.replace("print(alert.summary, alert.stamps)", "ids.append(alert.summary.id)")
    exec(lines, {"ids": ids})  # noqa: S102  (what the page shows)
    assert sorted(ids, key=str) == [1, 21]


def test_what_brokers_sent_back_is_told_and_what_cannot_be_is_counted(
    http: httpx.Client, served: Served
) -> None:
    served.until(lambda: served.follower.undecodable == 1, "what another broker wrote is refused")
    found = http.get("/api/object/sim/1001").json()["returned"]
    assert [one["classifier"] for one in found] == ["supernovae 2.1", f"{HOSTILE} 2.1"]
    assert found[0] | {"classifier": ""} == {
        "broker": "fink", "classifier": "", "alert": "21", "classes": {"111": 0.25, "112": 0.75}
    }  # fmt: skip
    assert "111: 0.250" in http.get("/object/sim/1001").text
    assert http.get("/api/object/sim/1005").json()["returned"] == []


@pytest.mark.parametrize("form", ["csv", "fits", "votable", "parquet"])
def test_a_light_curve_is_saved_as_a_file(http: httpx.Client, form: str) -> None:
    answer = http.get(f"/api/curve/sim/1001?format={form}")
    assert answer.status_code == 200
    assert f'filename="sim-1001.{form}"' in answer.headers["Content-Disposition"]


def test_stamps_records_and_charts_are_had_by_offset(http: httpx.Client) -> None:
    place = f"{SIM}/0/0"
    assert http.get(f"/api/stamps/{place}").content.startswith(b"\xff\xd8\xff")
    large = http.get(f"/api/stamp/{place}/science?stretch=linear")
    assert (large.headers["Content-Type"], "immutable" in large.headers["Cache-Control"]) == (
        "image/png",
        True,
    )
    assert http.get(f"/api/stamp/{place}/science?format=fits").content.startswith(b"SIMPLE")
    assert http.get(f"/api/record/{place}").json()["alert"]["diaSource"]["diaObjectId"] == 1001
    assert http.get("/api/finder/sim/1001").content.startswith(b"%PDF")


def test_the_box_finds_ids_positions_and_filters(http: httpx.Client) -> None:
    assert http.get("/find?q=1003").headers["Location"] == "/object/sim/1003?alert=3"
    near = http.get("/api/find", params={"q": "10.505 -20.25", "radius": 4}).json()["near"]
    assert [row["id"] for row in near] == ["5", "4", "6"]
    assert http.get("/api/find?q=bright").json()["topics"] == [FILTER]
    assert "Nothing of that name" in http.get("/find?q=xyzzy").text
    assert "3 alerts there" in http.get("/find", params={"q": "00:42:01.2 -20:15:00 r=4"}).text


def test_the_sky_is_counted_and_mapped(http: httpx.Client) -> None:
    found = http.get("/api/sky?survey=sim").json()
    assert (found["alerts"], sum(found["cells"].values())) == (22, 22)
    assert list(http.get("/api/moc").json()) == ["8"]
    assert http.get("/api/moc?format=fits").content.startswith(b"SIMPLE")
    assert "<polygon" in http.get("/sky").text


def test_live_lists_hear_what_comes_in_and_count_what_is_not_shown(served: Served, bootstrap: str) -> None:
    with httpx.stream("GET", f"{served.url}/api/live?survey=sim&most=2", timeout=60) as answer:
        lines = answer.iter_lines()
        assert next(lines) == "retry: 2000"
        writer = Writer(producer(bootstrap))
        for number in range(200, 240):
            writer.write(SIM, message(sim_alert(number)), partition=0, headers=[("survey", b"sim")])
        writer.flush()
        shown, more, most = 0, 0, 0
        while shown + more < 40:
            if (line := next(lines)).startswith("data: {"):
                found = json.loads(line.removeprefix("data: "))
                shown, more, most = (
                    shown + len(found["rows"]),
                    more + found["more"],
                    max(most, len(found["rows"])),
                )
        assert (shown + more, most) == (40, 2)


def test_a_live_list_goes_on_where_it_was(served: Served) -> None:
    number = served.portal.recent.newest_number([SIM]) - 3
    with httpx.stream(
        "GET", f"{served.url}/api/live?strips", headers={"Last-Event-ID": str(number)}, timeout=60
    ) as answer:
        (data,) = (
            line
            for line in (next(lines) for lines in [answer.iter_lines()] for _ in range(5))
            if 'rows"' in line
        )
    rows = json.loads(data.removeprefix("data: "))["rows"]
    assert [row["strip"][:31] for row in rows] == ["data:image/jpeg;base64,/9j/4AAQ"] * 3


def test_a_live_list_that_a_proxy_takes_for_done_is_none(served: Served) -> None:
    with httpx.Client(base_url=served.url, timeout=10) as proxy:  # one connection, for whoever asks
        assert proxy.head("/api/live").headers["Content-Type"].startswith("text/event-stream")
        assert proxy.get("/api/alerts").status_code == 200


def attributes(page: str) -> set[str]:
    """Return the names of all attributes in *page*."""
    found: set[str] = set()
    parser = HTMLParser()
    parser.handle_starttag = lambda _tag, given: found.update(name for name, _ in given)  # type: ignore[method-assign]
    parser.feed(page)
    return found


def test_texts_that_mean_harm_are_texts(http: httpx.Client) -> None:
    ivorn = quote(f"ivo://evil/{HOSTILE}", safe="")
    pages = [
        "/",
        f"/?topic={quote(HOSTILE)}",
        f"/find?q={quote(HOSTILE)}",
        "/object/sim/1099",
        "/object/sim/1001",
        f"/object/voevent/{ivorn}",
    ]
    for page in [http.get(path) for path in pages]:
        assert "<img src=x" not in page.text, page.url
        assert "<script>alert" not in page.text, page.url
        assert "1337" not in page.text, page.url
        assert attributes(page.text).isdisjoint({"onerror", "onload", "style"}), page.url
    assert "&lt;script&gt;alert(2)" in http.get(f"/object/voevent/{ivorn}").text
    saved = http.get("/api/curve/sim/1099?format=csv").headers["Content-Disposition"]
    assert saved == 'attachment; filename="sim-1099.csv"'


def test_browsers_run_nothing_but_ours(http: httpx.Client) -> None:
    for path in ("/", "/nope", "/api/alerts", "/static/portal.css", f"/api/stamps/{SIM}/0/0"):
        headers = http.get(path).headers
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"


def test_the_sky_view_may_fetch_images_only_where_they_are_asked_for(http: httpx.Client) -> None:
    rules = "Content-Security-Policy"
    assert "https:" not in http.get("/sky/view?ra=10&dec=-20").headers[rules]
    assert "connect-src 'self' data: https://*.unistra.fr" in http.get("/sky/view?tiles=1").headers[rules]
    assert http.get("/sky/view?dec=91").status_code == 400


@pytest.mark.parametrize(
    ("path", "status", "word"),
    [
        ("/nope", 404, "no such page"),
        ("/object/sim/5", 200, ""),
        ("/object/sim/424242", 404, "archive"),
        ("/?topic=requests.ann", 404, "no such stream"),
        ("/api/record/_schemas/0/0", 404, "no such stream"),
        ("/api/record/alerts.sim/0/99999999", 410, "99999999"),
        (f"/api/record/alerts.sim/0/{'9' * 5000}", 404, "no such page"),
        ("/api/stamp/alerts.sim/0/0/nothing", 404, "no stamp"),
        ("/api/stamp/alerts.sim/0/0/science?stretch=x", 422, "asinh"),
        ("/api/alerts?most=x", 400, "number"),
        ("/api/alerts?most=nan", 400, "from 1"),
        ("/api/sky?order=99", 400, "from 0"),
        ("/api/curve/sim/1001?format=xls", 400, "csv"),
        ("/api/finder/voevent/ivo%3A%2F%2Fnasa.gsfc.gcn%2FSWIFT%231-2", 404, "stamp"),
        ("/static/../app.py", 404, ""),
        ("/static/%2e%2e/commands.py", 404, ""),
    ],
)
def test_what_cannot_be_answered_is_said(http: httpx.Client, path: str, status: int, word: str) -> None:
    answer = http.get(path)
    assert (answer.status_code, word in answer.text) == (status, True)


def test_the_api_describes_itself(http: httpx.Client) -> None:
    found = http.get("/api/openapi.json").json()
    assert found["openapi"] == "3.1.0"
    page = http.get("/api").text
    for path, methods in found["paths"].items():
        assert path in page
        for one in methods.values():
            named = {found["name"] for found in one["parameters"] if found["in"] == "path"}
            assert named == set(re.findall(r"{(\w+)}", path))


def test_passwords_are_asked_for_where_kafka_asks(bootstrap: str) -> None:
    access = KafkaAccess({"sasl.username": "ann", "sasl.password": "secret"})
    with serving(bootstrap, access=access) as guarded, httpx.Client(base_url=guarded.url) as http:
        page, answer = http.get("/?survey=sim"), http.get("/api/alerts")
        assert (page.status_code, page.headers["Location"]) == (303, "/sign-in?next=/%3Fsurvey%3Dsim")
        assert (answer.status_code, answer.headers["WWW-Authenticate"][:5]) == (401, "Basic")
        assert answer.json()["message"].startswith("show a name and a password")
        assert http.get("/", auth=("ann", "secret")).status_code == 200
        assert http.get("/api/live").status_code == 401


def test_strangers_see_the_surveys_alone_where_it_is_public(bootstrap: str, served: Served) -> None:
    access = KafkaAccess({"sasl.username": "ann", "sasl.password": "secret"})
    with (
        serving(bootstrap, access=access, public=True) as guarded,
        httpx.Client(base_url=guarded.url) as http,
    ):
        guarded.until(lambda: FILTER in guarded.portal.recent.topics, "the filter's topic is read")
        assert FILTER not in http.get("/").text
        assert http.get(f"/?topic={FILTER}").status_code == 404
        assert http.get(f"/api/stamps/{FILTER}/0/0").status_code == 404
        assert http.get("/api/object/sim/1001").json()["filters"] == []
        assert FILTER in http.get("/", auth=("ann", "secret")).text


def test_an_address_that_asks_too_much_waits(bootstrap: str) -> None:
    limit = RateLimiter(rate=0.0, burst=3)
    with serving(bootstrap, limit=limit) as one, httpx.Client(base_url=one.url) as http:
        assert [http.get("/api/alerts").status_code for _ in range(4)] == [200, 200, 200, 429]
        assert "wait a few seconds" in http.get("/").text
        asked = [(one.method, one.path) for one in ENDPOINTS] + [("get", path) for path in PAGES]
        asked += [("post", path) for path in FORMS]
        asked += [("get", "/nope"), ("delete", "/"), ("get", "/static/portal.css"), ("get", "/night/")]
        found = {one: http.request(one[0], route_url(one[1]), json={}).status_code for one in asked}
        assert {one: status for one, status in found.items() if status != 429} == {}


def test_before_anything_came_in_the_page_says_so() -> None:
    host, bootstrap = mock_cluster()
    with serving(bootstrap) as one:
        assert "No alerts yet" in httpx.get(one.url).text
        assert httpx.get(f"{one.url}/sky").status_code == 200
        assert httpx.get(f"{one.url}/api/moc").status_code == 200
    del host


def test_brokers_are_no_surveys(http: httpx.Client) -> None:
    assert re.findall("<option>(.*?)</option>", http.get("/").text)[:2] == ["sim", "voevent"]


def test_a_radius_beyond_all_is_the_widest(http: httpx.Client) -> None:
    found = http.get("/api/find", params={"q": "10.5 -20.2 r=" + "9" * 400})
    assert (found.status_code, found.json()["radius"]) == (200, 10.0)
