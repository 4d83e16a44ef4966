"""Kafka itself says over HTTP, too, who may read and write what."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from directory.tests.serve.served import Directory
from nightwire.core.kafka import Writer, ensure_topics, producer
from nightwire.core.subscriptions import Registrar, SubscriptionFollower, interest
from nightwire.schemas.records import SUBSCRIPTION
from nightwire.schemas.serving import KafkaAccess
from nightwire.schemas.topics import DIRECTORY, FILTERS, SUBSCRIPTIONS, settings
from tests._guarded_broker import Guarded, guarded_broker, keys_of, speaking_as
from tests._secure_broker import CLIENT_ID, CLIENT_SECRET, SecureBroker, secure_broker
from tests._waiting import until

pytestmark = pytest.mark.kafka

ANN, BOB = ("ann", "ann's own password"), ("bob", "bob's own password")
TOPICS = ("alerts.sim", "filter.ann.bright", "filter.bob.faint")
LIFE = 20
"""How long a token holds. [s]"""


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with guarded_broker(tmp_path_factory.mktemp("guarded")) as one:
        for name, password in (ANN, BOB):
            assert one.run("user", "add", name, "--quota", "0B", password=password).exit_code == 0
        with speaking_as(one.keys):
            ensure_topics(one.bootstrap, [settings(topic) for topic in TOPICS])
            writer = Writer(producer(one.bootstrap))
            for topic in TOPICS:
                writer.write(topic, b"something")
            writer.flush()
        yield one


@pytest.fixture(scope="module")
def site(guarded: Guarded, serving: Any) -> Iterator[Any]:
    access = KafkaAccess({**guarded.keys, "bootstrap.servers": guarded.bootstrap})
    with serving(guarded.bootstrap, access=access) as one:
        yield one


def read(site: Any, topic: str, group: str, login: tuple[str, str] | None = ANN) -> httpx.Response:
    found: httpx.Response = site.http.get(f"/topics/{topic}/records?group={group}&as=raw&max=1", auth=login)
    return found


@pytest.mark.parametrize("topic", ["alerts.sim", "filter.ann.bright"])
def test_an_owner_reads_what_is_hers(site: Any, topic: str) -> None:
    found = read(site, topic, f"ann.{topic}")
    assert (found.status_code, found.content) == (200, b"something"), found.text


@pytest.mark.parametrize(
    ("topic", "group", "status", "said"),
    [
        ("filter.bob.faint", "ann.a", 403, "topic filter.bob.faint"),
        ("nosuch", "ann.a", 403, "topic nosuch"),
        ("filter.ann.nosuch", "ann.a", 404, "topic filter.ann.nosuch"),
        ("requests.ann", "bob.a", 403, "group bob.a"),
        ("filter.ann.bright", "bob.a", 403, "group bob.a"),
    ],
)
def test_what_is_not_hers_is_refused_by_name(
    site: Any, topic: str, group: str, status: int, said: str
) -> None:
    found = read(site, topic, group)
    assert (found.status_code, said in found.json()["message"]) == (status, True), found.text


def test_a_stream_is_refused_before_it_begins(site: Any) -> None:
    url = "/topics/filter.ann.bright/records?group=bob.s"
    found = site.http.get(url, auth=ANN, headers={"Accept": "text/event-stream"})
    assert "group bob.s" in found.text
    assert found.status_code == 403 or "event: error" in found.text


@pytest.mark.parametrize("login", [None, ("ann", "a guess"), ("nobody", "x"), ("a\0b", "x"), ("é,=", "ü")])
def test_who_is_not_known_is_refused_and_counted(site: Any, login: tuple[str, str] | None) -> None:
    labels = {"path": "/topics/{topic}/records", "status": "401"}
    before = site.count("answered_total", **labels)
    found = read(site, "alerts.sim", "ann.b", login)
    assert (found.status_code, "WWW-Authenticate" in found.headers) == (401, True)
    assert site.http.post("/topics/requests.ann/records", content=b"x", auth=login).status_code == 401
    assert site.count("answered_total", **labels) == before + 2


def test_an_owner_writes_where_she_may(site: Any) -> None:
    def write(topic: str) -> Any:
        return site.http.post(f"/topics/{topic}/records", content=b"x", auth=ANN)

    assert write("requests.ann").json() == {"records": [{"partition": 0, "offset": 0}]}
    for topic in ("alerts.sim", "requests.bob", "nosuch"):
        found = write(topic)
        assert (found.status_code, topic in found.json()["message"]) == (403, True), found.text
    assert write("requests.ann").status_code == 200


def test_one_users_sessions_are_not_anothers(site: Any) -> None:
    read(site, "alerts.sim", "ann.mine")
    assert read(site, "alerts.sim", "ann.mine", BOB).status_code == 403


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    with secure_broker(tmp_path_factory.mktemp("secure"), life=LIFE) as one:
        ensure_topics(one.plain, [settings("alerts.sim")])
        yield one


@pytest.fixture(scope="module")
def by_token(secure: SecureBroker, serving: Any) -> Iterator[Any]:
    own = {"security.protocol": "SASL_PLAINTEXT", "sasl.username": "x", "sasl.password": "x"}
    with serving(secure.oauth, access=KafkaAccess({**own, "bootstrap.servers": secure.oauth})) as one:
        yield one


def token(secure: SecureBroker) -> str:
    found = httpx.post(secure.token_url, data={}, auth=(CLIENT_ID, CLIENT_SECRET), timeout=30)
    return str(found.json()["access_token"])


@pytest.mark.slow
def test_a_stream_ends_with_its_token(secure: SecureBroker, by_token: Any) -> None:
    shown = {"Authorization": f"Bearer {token(secure)}"}
    assert by_token.http.post("/topics/alerts.sim/records", content=b"x", headers=shown).status_code == 200
    url = "/topics/alerts.sim/records?group=a&as=raw"
    with by_token.http.stream("GET", url, headers={**shown, "Accept": "text/event-stream"}) as stream:
        lines = [line for line in stream.iter_lines() if line.startswith(("data", "event"))]
    assert json.loads(lines[0].removeprefix("data: "))["value_base64"] == "eA=="
    assert lines[1] == "event: error"
    said = json.loads(lines[2].removeprefix("data: "))
    assert (said["status"], "token has ended" in said["message"]) == (401, True)
    assert by_token.http.get(url, headers=shown).status_code == 401


def test_a_forged_token_is_refused(secure: SecureBroker, by_token: Any) -> None:
    head, claims, signature = token(secure).split(".")
    forged = {"Authorization": f"Bearer {head}.{claims}.{signature[::-1]}"}
    for answer in (
        by_token.http.get("/topics/alerts.sim/records?group=a", headers=forged),
        by_token.http.post("/topics/alerts.sim/records", content=b"x", headers=forged),
    ):
        assert (answer.status_code, "the token is wrong" in answer.json()["message"]) == (401, True)


def test_an_owner_says_what_she_wants_under_her_own_name_of_what_she_may_read(
    guarded: Guarded, site: Any
) -> None:
    with speaking_as(guarded.keys):
        ensure_topics(guarded.bootstrap, [settings(SUBSCRIPTIONS)])

    def put(login: tuple[str, str], topic: str = "alerts.sim", **more: str) -> int:
        found = interest("here", "ann", "bright", topic, "magnitude < 19", **({"instance": "i"} | more))
        answer = site.http.put("/subscriptions", content=SUBSCRIPTION.encode(found), auth=login)
        return int(answer.status_code)

    with speaking_as(guarded.keys), SubscriptionFollower(guarded.bootstrap) as follower:  # the server, too
        assert (put(ANN), put(BOB), put(("ann", "a guess"))) == (201, 403, 401)
        assert (put(ANN, "filter.bob.faint"), put(ANN, kind="advertisement")) == (403, 403)
        assert site.http.put("/subscriptions", content=b"nonsense", auth=ANN).status_code == 400
        assert site.http.delete("/subscriptions/bright", auth=BOB).status_code == 204  # his own, so called
        until(lambda: [one.record["subscriber"] for one in follower.live("alerts.sim")] == ["ann"])
        assert site.http.delete("/subscriptions/bright", auth=ANN).status_code == 204
        until(lambda: follower.live() == [])


def test_a_reader_that_may_not_write_has_the_directory_say_it(
    guarded: Guarded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with speaking_as(guarded.keys):
        ensure_topics(guarded.bootstrap, [*map(settings, (DIRECTORY, FILTERS, SUBSCRIPTIONS))])
        directory = Directory(guarded.bootstrap, tmp_path)
        monkeypatch.setenv("NIGHTWIRE_DIRECTORY", f"http://127.0.0.1:{directory.port}")
        with SubscriptionFollower(guarded.bootstrap) as follower:
            assert follower.wait(60)
            with speaking_as(keys_of(*ANN)), Registrar(guarded.bootstrap) as registrar:
                registrar.subscribe("bright", "alerts.sim", "magnitude < 19")
                until(lambda: [one.record["subscriber"] for one in follower.live()] == ["ann"])
                registrar.unsubscribe("bright")
                registrar.subscribe("faint", "alerts.sim", "magnitude > 19")
                until(lambda: [one.record["name"] for one in follower.live()] == ["faint"])
            until(lambda: follower.live() == [])
        directory.stop()
