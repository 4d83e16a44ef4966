"""From an answer to a reader of its topics."""

import pytest

from nightwire.consumers import AlertReader
from nightwire.core.runtime import Endpoints
from nightwire.directory import Answer, SubscribeError
from nightwire.directory.model import Rows

HERE = Endpoints("inside:9092", "http://inside:8081", public={"kafka": "outside:9093"})


def asked(reader: AlertReader) -> tuple[list[str], str, str | None]:
    request = reader._session.request
    return [*request.plan.topics], request.endpoints.kafka, request.endpoints.schema_registry


def test_the_topics_of_the_rows_are_read_each_once_with_the_readers_options() -> None:
    rows = Rows(["owner", "topic"], [("ann", "a"), ("bob", None), ("bob", ""), ("ann", "b"), ("cid", "a")])
    reader = Answer(rows, HERE).subscribe(group="g", limit=3)
    assert asked(reader) == (["a", "b"], "inside:9092", "http://inside:8081")
    assert (reader._session.request.plan.group, reader._session.request.policy.limit) == ("g", 3)


@pytest.mark.parametrize(
    ("bootstrap", "kafka", "registry"),
    [
        ("outside:9093", "inside:9092", "http://inside:8081"),  # ours, by its address for others
        ("inside:9092", "inside:9092", "http://inside:8081"),
        ("chile:9092", "chile:9092", "http://chile:8081"),
    ],
)
def test_a_row_says_where_its_topic_lies(bootstrap: str, kafka: str, registry: str) -> None:
    rows = Rows(["topic", "bootstrap", "registry"], [("a", bootstrap, "http://chile:8081")])
    assert asked(Answer(rows, HERE).subscribe()) == (["a"], kafka, registry)
    assert asked(Answer(rows, HERE).subscribe(bootstrap="other:1"))[1] == "other:1"


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (Rows(["topic"], []), "no row has a topic"),
        (Rows(["topic"], [("",), (None,)]), "no row has a topic"),
        (Rows(["name"], [("bright",)]), "no column topic"),
        (Rows(["topic", "bootstrap"], [("a", "x:1"), ("b", "y:1")]), r"2 Kafkas \(x:1, y:1\)"),
    ],
)
def test_what_cannot_be_read_is_said(rows: Rows, why: str) -> None:
    with pytest.raises(SubscribeError, match=why):
        Answer(rows, HERE).subscribe()


def test_our_password_is_shown_to_no_other_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Rows(["topic", "bootstrap"], [("a", "chile:9092")])
    monkeypatch.setenv("KAFKA_SASL_USERNAME", "ann")
    with pytest.raises(SubscribeError, match="your password of this one is not shown"):
        Answer(rows, HERE).subscribe()
    assert asked(Answer(rows, HERE).subscribe(bootstrap="chile:9092"))[1] == "chile:9092"
