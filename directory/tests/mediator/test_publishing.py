"""Writing over HTTP to a real Kafka: what is answered is there."""

import os
from base64 import b64encode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from nightwire.core.kafka import ensure_topics, read_to_end
from nightwire.schemas.topics import MAX_MESSAGE, TopicSettings

pytestmark = pytest.mark.kafka

Topic = Callable[..., str]
MB = 10**6


def post(here: Any, topic: str, content: bytes, **headers: str) -> Any:
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return here.http.post(f"/topics/{topic}/records", content=content, headers=named)


def record(value: bytes | None, **more: Any) -> dict[str, Any]:
    return {"value_base64": None if value is None else b64encode(value).decode(), **more}


def test_a_file_is_written_as_it_came(here: Any, kafka: str, fresh_topic: Topic) -> None:
    topic, value = fresh_topic(), os.urandom(1000)
    said = post(here, topic, value, Nightwire_Key="%FF%20k", Nightwire_Headers="a=1&%C3%BC=%00")
    assert (said.status_code, said.json()) == (200, {"records": [{"partition": 0, "offset": 0}]})
    (message,) = read_to_end(kafka, [topic])
    assert (message.value(), message.key()) == (value, b"\xff k")
    assert message.headers() == [("a", b"1"), ("ü", b"\0")]
    assert here.count("nightwire_mediator_records_total", direction="in", topic=topic) == 1


def test_what_was_read_can_be_written_again(here: Any, kafka: str, fresh_topic: Topic) -> None:
    """The headers of an answer are those of a question, tombstones' too."""
    first, second = fresh_topic(), fresh_topic()
    post(here, first, b"", Nightwire_Key="k", Nightwire_Tombstone="true")
    found = here.http.get(f"/topics/{first}/records?group=g{os.urandom(4).hex()}&as=raw&max=1")
    names = [name for name in found.headers if name.startswith("nightwire-")]
    post(here, second, found.content, **{name: found.headers[name] for name in names})
    (message,) = read_to_end(kafka, [second])
    assert (message.value(), message.key()) == (None, b"k")


def test_a_batch_says_of_each_where_it_lies_or_why_not(here: Any, kafka: str, fresh_topic: Topic) -> None:
    topic = fresh_topic(partitions=2)
    records = [
        record(b"a", key="ü", partition=1, headers=[{"key": "h", "value": "AA=="}]),
        record(b"b", partition=7),
        record(None, key_base64="/w==", partition=0),
        record(b"\0" * (MAX_MESSAGE + 1)),
    ]
    said = here.http.post(f"/topics/{topic}/records", json={"records": records})
    first, second, third, fourth = said.json()["records"]
    assert said.status_code == 207
    assert (first, third) == ({"partition": 1, "offset": 0}, {"partition": 0, "offset": 0})
    assert (second["status"], fourth["status"]) == (404, 413)
    found = {message.key(): (message.value(), message.headers()) for message in read_to_end(kafka, [topic])}
    assert found == {"ü".encode(): (b"a", [("h", b"\0")]), b"\xff": (None, None)}


def test_the_longest_record_passes_and_a_longer_one_is_refused(
    here: Any, kafka: str, fresh_topic: Topic
) -> None:
    topic, value = fresh_topic(), os.urandom(MAX_MESSAGE - 1024)
    assert post(here, topic, value).status_code == 200
    for longer in (MAX_MESSAGE, MAX_MESSAGE + 1, 9 << 20):
        assert post(here, topic, os.urandom(longer)).status_code == 413
    found = here.http.get(f"/topics/{topic}/records?group=g{os.urandom(4).hex()}&as=raw&max=1")
    assert found.content == value


def test_kafkas_own_limit_hurts_nobody_else(here: Any, kafka: str) -> None:
    topic = f"small.{os.urandom(4).hex()}"
    ensure_topics(kafka, [TopicSettings(topic, 1, {"max.message.bytes": str(MB)})])
    records = [record(os.urandom(size)) for size in (10, 2 * MB, 10)]
    said = here.http.post(f"/topics/{topic}/records", json={"records": records}).json()["records"]
    assert [one.get("status") for one in said] == [None, 413, None]
    assert len(list(read_to_end(kafka, [topic]))) == 2


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"{", 400, "no JSON"),
        (b"[]", 400, "records"),
        (b'{"records": []}', 400, "records"),
        (b'{"records": [{"value": 1}]}', 400, "record 0"),
        (b'{"records": [{"value_base64": "?"}]}', 400, "record 0"),
        (b'{"records": [{"value_base64": "", "partition": "0"}]}', 400, "partition"),
        (b'{"records": [{"value_base64": "", "offset": 1}]}', 400, "offset"),
        (b'{"records": [{"value_base64": "", "key": 1}]}', 400, "record 0"),
        (b'{"records": [{"value_base64": "", "headers": [{"key": "\\u0000", "value": ""}]}]}', 400, "NUL"),
        (b'{"records": [' + b",".join([b'{"value_base64": ""}'] * 10_001) + b"]}", 413, "10001 records"),
        (b"[" * 100_000, 400, "no JSON"),
    ],
)
def test_what_cannot_be_written_is_refused(
    here: Any, fresh_topic: Topic, body: bytes, status: int, said: str
) -> None:
    found = post(here, fresh_topic(), body, Content_Type="application/json")
    assert (found.status_code, said in found.json()["message"]) == (status, True), found.text


def test_a_topic_that_is_not_there_is_named(here: Any) -> None:
    found = post(here, "nosuch", b"x")
    assert (found.status_code, "topic nosuch" in found.json()["message"]) == (404, True)


def test_where_nobody_has_a_password_others_only_read(serving: Any, kafka: str, fresh_topic: Topic) -> None:
    topic = fresh_topic()
    with serving(kafka, closed=True) as outside:
        assert post(outside, topic, b"x").status_code == 403
        found = outside.http.get(f"/topics/{topic}/records?group=g{os.urandom(4).hex()}&timeout=0")
        assert found.status_code == 200


@pytest.mark.slow
def test_fourteen_write_and_read_a_megabyte_each(here: Any, fresh_topic: Topic) -> None:
    """Kafka's heap has 512 MB."""
    topic, each = fresh_topic(partitions=4), 2
    contents = [[os.urandom(MB) for _ in range(each)] for _ in range(14)]

    def write(number: int) -> None:
        for content in contents[number]:
            assert post(here, topic, content).status_code == 200

    def read(number: int) -> set[bytes]:
        found: set[bytes] = set()
        url = f"/topics/{topic}/records?group=g{os.urandom(4).hex()}&as=avro"
        while len(found) < 14 * each:
            answer = here.http.get(url)
            assert answer.is_success, answer.text
            body = memoryview(answer.content)
            while body:
                length = int.from_bytes(body[:4], "big")
                found.add(bytes(body[4 : 4 + length]))
                body = body[4 + length :]
            url = answer.links["next"]["url"]
        return found

    with ThreadPoolExecutor(28) as threads:
        read_ones = [threads.submit(read, number) for number in range(14)]
        list(threads.map(write, range(14)))
        wanted = {content for own in contents for content in own}
        assert all(one.result() == wanted for one in read_ones)
