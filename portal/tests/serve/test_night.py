"""The page of the night: what the commands tell, to who may see it."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from nightwire.core.accounting import Account, FilterClasses, write_account
from nightwire.core.kafka import Writer, producer
from nightwire.core.runtime import Endpoints
from nightwire.portal import pipeline_status
from nightwire.portal.pipeline_status import CachedQuery, PipelineStatus
from nightwire.schemas.records import SEEN
from nightwire.schemas.serving import KafkaAccess
from nightwire.schemas.topics import DEAD_LETTERS, DIRECTORY, seen
from portal.tests.sample import HOSTILE, SIM, Served, serving, voevent

GRB = "ivo://nasa.gsfc.gcn/SWIFT#9"


def bury(writer: Writer, source: str, reason: str) -> None:
    """Write a dead letter to the one partition that the topic has on a real Kafka."""
    headers = [("stage", b"filters"), ("source", source.encode()), ("reason", reason.encode())]
    writer.write(DEAD_LETTERS, b"\x00bad", partition=0, headers=headers)


def fill_night(bootstrap: str) -> None:
    """Write what a night leaves in Kafka: accounts, a slow filter, dead letters, a thread."""
    writer = Writer(producer(bootstrap))
    counts = {"ann/bright": FilterClasses(10, 3, 7), "ann/dim": FilterClasses(10, 10)}
    for account in (
        Account("filters", SIM, 0, 0, 9, 10, 7, dead_lettered=1, filters=counts),
        Account("dead-letters", "dead-letters/0", 0, 0, 0, 1, 1),
    ):
        write_account(writer, account)
    for source in (f"{SIM}[0]@3", "night.avro"):
        bury(writer, source, HOSTILE)
    counted = dict.fromkeys(("version", "evaluated", "passed", "faulted", "sent", "capped", "cpu"), 10)
    stats = counted | {"owner": "ann", "name": "bright", "way": "rows", "lane": "slow", "behind_s": 71.0}
    stats |= {"since": 0, "time": 0}
    writer.write(seen("ann"), SEEN.encode(stats | {"delay_p50": 0.25}), key=b"bright", partition=0)
    cites = [{"ivorn": GRB, "cite": "followup"}, {"ivorn": "ivo://lost/1", "cite": "supersedes"}]
    params = [{"name": "skymap", "value": "https://gracedb.example/sky.fits", "unit": None, "ucd": None}]
    params[0] |= {"group": "GW"}
    more = {"error": 8.0, "params": params, "author": "ivo://nasa.gsfc.gcn"}
    writer.write("voevents", voevent(GRB, **more), partition=0)
    for received in (1_800_000_000_000, 1_800_000_000_001):  # by two gateways
        copy = voevent(f"{GRB}-2", citations=cites, received=received)
        writer.write("voevents", copy, partition=0)
    writer.flush()


@pytest.fixture(scope="module")
def http(served: Served, bootstrap: str) -> Iterator[httpx.Client]:
    fill_night(bootstrap)
    served.until(lambda: len(served.portal.recent.posts()) == 4, "the thread is read")
    with httpx.Client(base_url=served.url, timeout=60) as client:
        yield client


def test_the_night_says_what_the_commands_say(http: httpx.Client) -> None:
    found = http.get("/api/night").json()
    stages = {one["stage"]: one for one in found["accounts"]["answer"]["stages"]}
    assert {name: stages["filters"][name] for name in ("read", "delivered", "dead_lettered")} == {
        "read": 10,
        "delivered": 7,
        "dead_lettered": 1,
    }
    assert stages["filters"]["lag"] > 0
    assert found["accounts"]["answer"]["discrepancies"] == [
        f"filters: 2 of 10 in no class, {SIM}[0] from 0",
    ]
    assert [(one["name"], one["lane"], one["delay_p50"]) for one in found["filters"]["answer"]] == [
        ("bright", "slow", 0.25)
    ]
    letters = found["letters"]["answer"]
    assert [(one["number"], one["replayed"]) for one in letters] == [(1, False), (0, True)]
    assert found["streams"] == {"answer": None, "missing": "no directory is known"}
    page = http.get("/night").text
    for text in ("2 missing", "slow, 71 s behind", "71 s behind", "2 filters", "no directory is known"):
        assert text in page, text
    assert "<script>alert" not in page


def test_dead_letters_say_how_they_are_replayed(http: httpx.Client, bootstrap: str) -> None:
    writer = Writer(producer(bootstrap))
    bury(writer, f"{SIM}[0]@4", "why")
    writer.flush()
    again = PipelineStatus(Endpoints(bootstrap)).answers({"dead-letters"})["letters"][0]
    assert [one.number for one in again] == [2, 1, 0]
    page = http.get("/night").text
    assert "mend it where it came from" in page
    assert "00000000  00 62 61 64" in page


def test_a_voevent_is_readable_with_its_place_and_its_thread(http: httpx.Client) -> None:
    page = http.get("/object/voevent/ivo%3A%2F%2Fnasa.gsfc.gcn%2FSWIFT%239").text
    assert '<a href="https://gracedb.example/sky.fits" rel="noreferrer nofollow">' in page
    assert "by ivo://nasa.gsfc.gcn" in page
    assert 'class="mark"' in page
    assert "within 8.000°" in page
    thread = page[page.index("Its thread") :]
    assert f"followup of {GRB}" in thread
    assert "ivo://lost/1" in thread
    assert thread.count(f">{GRB}-2</a>") == 1
    assert f">{GRB}-2</a>" in http.get("/night").text


def test_strangers_see_no_accounts_nor_peers(bootstrap: str, http: httpx.Client) -> None:
    access = KafkaAccess({"sasl.username": "ann", "sasl.password": "secret"})
    with serving(bootstrap, access=access, public=True) as one, httpx.Client(base_url=one.url) as stranger:
        assert stranger.get("/api/night").json() == {"filters": {"answer": [], "missing": ""}}
        assert "shown to who may read these topics" in stranger.get("/night").text
        named = stranger.get("/api/night", auth=("ann", "secret")).json()
        assert named.keys() == {"accounts", "filters", "letters", "streams", "gateways"}


def test_nobody_waits_twice_for_a_kafka_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline_status, "TIMEOUT", 0.2)
    there = PipelineStatus(Endpoints("127.0.0.1:1"))
    first = there.answers({"accounts", DIRECTORY})
    assert first["accounts"] == (None, "no answer for some seconds")
    assert first["streams"] == (None, "no directory is known")
    query = there._queries["accounts"]
    assert query.answer(1000.0) == first["accounts"]  # at once


def test_an_old_answer_is_shown_until_there_is_another() -> None:
    answers: list[Any] = [datetime(2026, 1, 1, tzinfo=UTC), ZeroDivisionError("gone")]

    def ask() -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    query = CachedQuery(ask)
    query.start()
    first = query.answer(60.0)
    query._asked_at = float("-inf")
    query.start()
    while query._thread is not None:
        query._thread.join()
    assert (query.answer(60.0), first[1]) == ((first[0], "ZeroDivisionError: gone"), "")
