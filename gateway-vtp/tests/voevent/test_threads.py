"""Events that hang together by citations, and the verb that shows them."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from nightwire.core.kafka import Writer, producer
from nightwire.core.voevents import Post, missing, thread
from nightwire.gateway.cli.gateway import gateway
from nightwire.schemas.records import VOEVENT
from nightwire.schemas.topics import VOEVENTS

FIRST = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
NAMES = st.sampled_from("abcdefgh")


def post(ivorn: str, *cited: str, minutes: int = 0, cite: str = "followup", version: str = "2.0") -> Post:
    citations = tuple((cite, name) for name in cited)
    return Post(ivorn, version, "observation", FIRST + timedelta(minutes=minutes), citations)


def names(posts: list[Post]) -> list[str]:
    return [one.ivorn for one in posts]


def test_a_thread_goes_both_ways_and_is_in_the_order_of_time() -> None:
    posts = [
        post("third", "second", minutes=3),
        post("other", "unrelated", minutes=2),
        post("second", "first", minutes=1),
        post("first", minutes=2),
    ]
    for name in ("first", "second", "third"):
        assert names(thread(posts, name)) == ["second", "first", "third"]
    assert thread(posts, "nobody") == []


def test_an_event_that_is_cited_and_not_there_holds_its_thread_together() -> None:
    posts = [post("one", "lost", minutes=1), post("two", "lost", minutes=2)]
    assert names(thread(posts, "one")) == names(thread(posts, "lost")) == ["one", "two"]
    assert missing(thread(posts, "one")) == ["lost"]


def test_two_versions_of_an_event_are_both_in_its_thread() -> None:
    posts = [post("one", version="1.1"), post("one", version="2.0", minutes=1)]
    assert [one.version for one in thread(posts, "one")] == ["1.1", "2.0"]


@given(st.lists(st.tuples(NAMES, st.lists(NAMES, max_size=3)), max_size=12))
def test_whoever_is_in_a_thread_has_the_same_thread(some: list[tuple[str, list[str]]]) -> None:
    posts = [post(name, *cited, minutes=number) for number, (name, cited) in enumerate(some)]
    for one in posts:
        mine = thread(posts, one.ivorn)
        assert one in mine
        assert all(thread(posts, other.ivorn) == mine for other in mine)


def write(bootstrap: str, ivorn: str, *citations: tuple[str, str], minutes: int = 0) -> None:
    cited = [{"ivorn": name, "cite": cite} for cite, name in citations]
    fields = {"ivorn": ivorn, "role": "observation", "version": "2.0", "citations": cited, "params": []}
    empty = dict.fromkeys(("author", "date", "event_time", "ra", "dec", "error", "coord_system"))
    writer = Writer(producer(bootstrap))
    more = {"origin": "test", "received": FIRST + timedelta(minutes=minutes), "raw": b""}
    value = VOEVENT.encode({**fields, **empty, **more})
    writer.write(VOEVENTS, value, key=ivorn.encode(), headers=[("hash", ivorn.encode())])
    writer.flush()


@pytest.fixture(scope="module")
def log(bootstrap: str) -> str:
    """Return a Kafka with a thread, a copy of one of its events, another, and garbage."""
    write(bootstrap, "ivo://a/burst#1")
    write(bootstrap, "ivo://a/burst#2", ("supersedes", "ivo://a/burst#1"), minutes=1)
    write(bootstrap, "ivo://a/burst#2", ("supersedes", "ivo://a/burst#1"), minutes=2)
    write(bootstrap, "ivo://b/other#1")
    write(
        bootstrap,
        "ivo://c/note#1",
        ("retraction", "ivo://a/burst#2"),
        ("followup", "ivo://lost#1"),
        minutes=3,
    )
    writer = Writer(producer(bootstrap))
    writer.write(VOEVENTS, b"no event", key=b"x")
    writer.flush()
    return bootstrap


@pytest.mark.slow
def test_the_verb_shows_a_thread(log: str) -> None:
    said = CliRunner().invoke(gateway, ["thread", "ivo://a/burst#1", "--bootstrap", log])
    assert said.exit_code == 0, said.output
    assert said.stdout.splitlines() == [
        "2026-01-02 03:04:05  observation  ivo://a/burst#1",
        "2026-01-02 03:05:05  observation  ivo://a/burst#2",
        "                                  supersedes ivo://a/burst#1",
        "2026-01-02 03:07:05  observation  ivo://c/note#1",
        "                                  retraction ivo://a/burst#2",
        "                                  followup ivo://lost#1",
        "not in the log                    ivo://lost#1",
    ]


def test_programs_get_json(log: str) -> None:
    said = CliRunner().invoke(gateway, ["thread", "ivo://lost#1", "--json", "--bootstrap", log])
    found = json.loads(said.stdout)
    assert [one["ivorn"] for one in found["events"]] == [
        "ivo://a/burst#1",
        "ivo://a/burst#2",
        "ivo://c/note#1",
    ]
    assert found["missing"] == ["ivo://lost#1"]
    assert found["events"][1]["citations"] == [{"cite": "supersedes", "ivorn": "ivo://a/burst#1"}]


def test_an_event_that_is_unknown_is_said_to_be(log: str) -> None:
    said = CliRunner().invoke(gateway, ["thread", "ivo://d/e#1", "--bootstrap", log])
    assert said.exit_code == 1
    assert "ivo://d/e#1 is not in the log, and nothing there cites it" in said.stderr
