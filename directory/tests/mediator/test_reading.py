"""Reading over HTTP from a real Kafka: what was delivered comes again until it is acknowledged."""

import email
import json
import math
import os
import threading
from base64 import b64decode
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from confluent_kafka import Consumer, TopicPartition

from nightwire.core.kafka import admin, producer
from nightwire.core.presence import entry
from nightwire.core.stack import free_port
from nightwire.directory.mediator import client_pool, mediator
from nightwire.schemas import Codec, SchemaRegistry
from nightwire.schemas.records import ENTRY
from nightwire.schemas.wire import frame
from tests._waiting import until

pytestmark = pytest.mark.kafka

ODD = bytes(range(256)) + b"\r\n--\r\n\r"
Topic = Callable[..., str]


def fill(kafka: str, topic: str, values: list[bytes | None], partition: int = 0, **more: Any) -> None:
    client = producer(kafka)
    for value in values:
        client.produce(topic, value, partition=partition, **more)
    assert client.flush(60) == 0


def numbers(count: int) -> list[bytes | None]:
    return [str(number).encode() for number in range(count)]


def group() -> str:
    return f"g{os.urandom(4).hex()}"


def get(here: Any, topic: str, said: str) -> httpx.Response:
    found: httpx.Response = here.http.get(f"/topics/{topic}/records?{said}")
    assert found.is_success, found.text
    return found


def follow(here: Any, found: httpx.Response) -> httpx.Response:
    """Return the answer to the next request, which acknowledges *found*."""
    answer: httpx.Response = here.http.get(found.links["next"]["url"])
    return answer


def values(found: httpx.Response) -> list[str]:
    return [b64decode(record["value_base64"]).decode() for record in found.json()]


def committed(kafka: str, topic: str, name: str, partition: int = 0) -> int:
    client = Consumer({"bootstrap.servers": kafka, "group.id": name})
    (found,) = client.committed([TopicPartition(topic, partition)], timeout=30)
    client.close()
    return int(found.offset)


def frames(body: bytes) -> list[bytes | None]:
    found: list[bytes | None] = []
    while body:
        length = int.from_bytes(body[:4], "big", signed=True)
        found.append(body[4 : 4 + length] if length >= 0 else None)
        body = body[4 + max(length, 0) :]
    return found


def events(lines: Iterator[str], count: int) -> list[tuple[str, Any]]:
    """Return the next *count* events: id, or its name, and data."""
    found: list[tuple[str, Any]] = []
    name = ""
    for line in lines:
        field, _, text = line.partition(": ")
        name = text if field in ("id", "event") else name
        if field == "data":
            found.append((name, json.loads(text)))
            if len(found) == count:
                return found
    raise AssertionError(found)


def test_the_file_comes_as_it_was(here: Any, kafka: str, fresh_topic: Topic) -> None:
    topic = fresh_topic()
    fill(kafka, topic, [ODD], key=b"\xff k", headers=[("a", b"1"), ("a=&", b"\x00"), ("e", None)])
    found = get(here, topic, f"group={group()}&as=raw&max=1")
    assert found.content == ODD
    said = {name.removeprefix("nightwire-"): text for name, text in found.headers.items()}
    assert (said["topic"], said["partition"], said["offset"]) == (topic, "0", "0")
    assert (said["key"], said["headers"]) == ("%FF%20k", "a=1&a%3D%26=%00&e=")
    assert here.count("nightwire_mediator_bytes_total", direction="out", topic=topic) == len(ODD)


def test_many_files_are_the_parts_of_a_multipart_message(here: Any, kafka: str, fresh_topic: Topic) -> None:
    topic = fresh_topic()
    fill(kafka, topic, [ODD, b"", None, b"x\r"])
    found = get(here, topic, f"group={group()}&as=raw")
    head = f"Content-Type: {found.headers['Content-Type']}\r\n\r\n".encode()
    parts: Any = email.message_from_bytes(head + found.content).get_payload()
    assert [part.get_payload(decode=True) for part in parts] == [ODD, b"", b"", b"x\r"]
    assert [part["Nightwire-Tombstone"] for part in parts] == [None, None, "true", None]


def test_values_alone_come_behind_their_lengths(here: Any, kafka: str, fresh_topic: Topic) -> None:
    topic = fresh_topic()
    fill(kafka, topic, [ODD, b"", None])
    found = get(here, topic, f"group={group()}&as=avro")
    assert found.content == b"\0\0\1\x07" + ODD + b"\0\0\0\0" + b"\xff\xff\xff\xff"
    assert frames(found.content) == [ODD, b"", None]


def test_json_holds_what_can_be_decoded_and_the_rest_as_it_is(
    here: Any, kafka: str, fresh_topic: Topic
) -> None:
    topic, said = fresh_topic(), entry("broker", "antares")
    fill(kafka, topic, [ENTRY.encode(said), b"no record", None], key="ü", headers=[("h", b"\xff")])
    first, second, third = get(here, topic, f"group={group()}").json()
    assert (first["key"], first["headers"], first["value"]["name"]) == (
        "ü",
        [{"key": "h", "value": "/w=="}],
        "antares",
    )
    assert "not in wire format" in second["error"]
    assert b64decode(second["value_base64"]) == b"no record"
    assert third["value"] is None


def test_records_are_decoded_by_the_schema_registry(
    serving: Any, kafka: str, registry_url: str, fresh_topic: Topic
) -> None:
    topic, name = fresh_topic(), f"r{os.urandom(4).hex()}"
    fields = [{"name": "flux", "type": "double"}, {"name": "stamp", "type": "bytes"}]
    schema = {"type": "record", "name": name, "fields": fields}
    with SchemaRegistry(registry_url) as registry:
        number = registry.register(f"{topic}-value", schema)
    fill(kafka, topic, [frame(number, Codec(schema).encode({"flux": math.nan, "stamp": b"\x1f"}))])
    with serving(kafka, registry=registry_url) as here:
        (whole,) = get(here, topic, f"group={group()}").json()
        (light,) = get(here, topic, f"group={group()}&stamps=false").json()
    assert (whole["value"], light["value"]) == ({"flux": None, "stamp": "Hw=="}, {"flux": None})


def test_while_the_registry_is_away_records_wait(serving: Any, kafka: str, fresh_topic: Topic) -> None:
    topic, name = fresh_topic(), group()
    fill(kafka, topic, [frame(7_654_321, b"x")])
    with serving(kafka, registry=f"http://127.0.0.1:{free_port()}") as here:
        found = here.http.get(f"/topics/{topic}/records?group={name}")
        assert (found.status_code, "registry" in found.json()["message"]) == (503, True)
        assert get(here, topic, f"group={name}&as=avro").content.endswith(b"x")


def test_what_is_not_acknowledged_comes_again(here: Any, kafka: str, fresh_topic: Topic) -> None:
    topic, name = fresh_topic(), group()
    fill(kafka, topic, numbers(6))
    asked = f"group={name}&max=2"
    first, again = get(here, topic, asked), get(here, topic, asked)
    assert values(first) == values(again) == ["0", "1"]
    second = follow(here, again)
    assert values(second) == values(follow(here, again)) == ["2", "3"]
    assert values(follow(here, second)) == ["4", "5"]


def test_a_group_goes_on_elsewhere_where_it_was_acknowledged(
    serving: Any, kafka: str, fresh_topic: Topic
) -> None:
    topic, name = fresh_topic(), group()
    fill(kafka, topic, numbers(6))
    asked = f"group={name}&max=2"
    with serving(kafka) as here:
        follow(here, get(here, topic, asked))
    assert committed(kafka, topic, name) == 2
    with serving(kafka) as here:
        second = get(here, topic, asked)
        assert values(second) == ["2", "3"]
    with serving(kafka) as here:
        assert values(follow(here, second)) == ["4", "5"]
    assert committed(kafka, topic, name) == 4


def test_an_old_acknowledgement_takes_nothing_back(serving: Any, kafka: str, fresh_topic: Topic) -> None:
    topic, name = fresh_topic(), group()
    fill(kafka, topic, numbers(4))
    with serving(kafka) as here:
        follow(here, get(here, topic, f"group={name}&max=2"))
    with serving(kafka) as here:
        assert values(get(here, topic, f"group={name}&max=2&after=0:1")) == ["2", "3"]
        assert values(get(here, topic, f"group={name}&max=2&after=0:1")) == ["2", "3"]
        assert here.http.get(f"/topics/{topic}/records?group={name}&after=0:99&timeout=0").json() == []


def test_a_commit_is_answered_when_kafka_has_it(here: Any, kafka: str, fresh_topic: Topic) -> None:
    topic, name = fresh_topic(), group()
    fill(kafka, topic, numbers(4))
    path = f"/topics/{topic}/commit?group={name}&after="
    assert here.http.post(f"{path}0:1").status_code == 409
    found = get(here, topic, f"group={name}&max=3")
    assert here.http.post(f"{path}{found.headers['Nightwire-After']}").status_code == 204
    assert committed(kafka, topic, name) == 3


def test_two_members_share_a_topic(here: Any, kafka: str, fresh_topic: Topic) -> None:
    topic, name = fresh_topic(partitions=2), group()
    answers = [get(here, topic, f"group={name}&member={member}&timeout=0.3") for member in "ab"]
    got: list[set[int]] = [set(), set()]
    while not all(got):
        for partition in (0, 1):
            fill(kafka, topic, numbers(1), partition)
        answers = [follow(here, answer) for answer in answers]
        got = [{record["partition"] for record in answer.json()} for answer in answers]
    assert got[0].isdisjoint(got[1])


def test_nothing_new_is_an_empty_answer(here: Any, fresh_topic: Topic) -> None:
    topic, name = fresh_topic(), group()
    assert get(here, topic, f"group={name}&timeout=0.1").json() == []
    assert get(here, topic, f"group={name}&timeout=0.1&as=raw").status_code == 204


def test_an_answer_ends_at_its_bytes(here: Any, kafka: str, fresh_topic: Topic) -> None:
    topic = fresh_topic()
    fill(kafka, topic, [os.urandom(100_000)] * 100)
    found = get(here, topic, f"group={group()}&as=avro&bytes=1000000")
    assert 1_000_000 <= len(found.content) < 8_000_000


def test_events_go_on_behind_the_last_that_came(here: Any, kafka: str, fresh_topic: Topic) -> None:
    topic, name = fresh_topic(), group()
    fill(kafka, topic, numbers(6))
    url, accept = f"/topics/{topic}/records?group={name}", {"Accept": "text/event-stream"}

    def read(count: int, **more: str) -> list[tuple[str, Any]]:
        with here.http.stream("GET", url, headers=accept | more) as stream:
            assert stream.headers["Content-Type"].startswith("text/event-stream")
            return events(stream.iter_lines(), count)

    first = read(3)
    assert [event[1]["offset"] for event in first] == [0, 1, 2]
    assert [event[1]["offset"] for event in read(2)] == [0, 1]
    last = read(2, **{"Last-Event-ID": first[-1][0]})
    assert [event[1]["offset"] for event in last] == [3, 4]


def test_a_stream_is_acknowledged_while_it_lasts(here: Any, kafka: str, fresh_topic: Topic) -> None:
    topic, name = fresh_topic(), group()
    said = f"?group={name}"
    with here.http.stream(
        "GET", f"/topics/{topic}/records{said}", headers={"Accept": "text/event-stream"}
    ) as s:
        lines = s.iter_lines()
        fill(kafka, topic, numbers(2))
        after = events(lines, 2)[-1][0]
        assert (
            httpx.post(f"{here.http.base_url}/topics/{topic}/commit{said}&after={after}").status_code == 204
        )
        fill(kafka, topic, numbers(1))
        assert events(lines, 1)[0][1]["offset"] == 2
    assert committed(kafka, topic, name) == 2


def test_two_do_not_read_in_one_session(here: Any, kafka: str, fresh_topic: Topic) -> None:
    topic, name = fresh_topic(), group()
    url = f"/topics/{topic}/records?group={name}"
    with here.http.stream("GET", url, headers={"Accept": "text/event-stream"}) as stream:
        lines = stream.iter_lines()
        next(lines)
        second = here.http.get(url)
        assert (second.status_code, "member=" in second.json()["message"]) == (409, True)
    fill(kafka, topic, numbers(1))
    assert values(get(here, topic, f"group={name}")) == ["0"]


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("nosuch/records?group=a", 404, "topic nosuch"),
        ("a%00b/records?group=a", 404, "no name of a topic"),
        ("x/records", 400, "group="),
        ("x/records?group=a&max=0", 400, "max=0"),
        ("x/records?group=a&timeout=nan", 400, "timeout=nan"),
        ("x/records?group=a&as=xml", 400, "as=xml"),
        ("x/records?group=a&after=1", 400, "'1'"),
        ("x/records?group=a%0ab", 400, "group="),
        ("x/records?group=a&offset=1", 400, "offset"),
    ],
)
def test_what_cannot_be_asked_is_refused(here: Any, path: str, status: int, said: str) -> None:
    found = here.http.get(f"/topics/{path}")
    assert (found.status_code, said in found.json()["message"]) == (status, True), found.text


def test_one_user_has_so_many_sessions(
    serving: Any, kafka: str, fresh_topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mediator, "SESSIONS_PER_USER", 2)
    topic = fresh_topic()
    with serving(kafka) as here:
        for _ in range(2):
            get(here, topic, f"group={group()}&timeout=0")
        third = here.http.get(f"/topics/{topic}/records?group={group()}")
        assert (third.status_code, "of yours" in third.json()["message"]) == (429, True)


def members(kafka: str, name: str) -> int:
    client = admin(kafka)
    (found,) = client.describe_consumer_groups([name]).values()
    return len(found.result(30).members)


def test_a_session_that_nobody_uses_leaves_its_group(
    here: Any, kafka: str, fresh_topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, name = fresh_topic(), group()
    fill(kafka, topic, numbers(2))
    monkeypatch.setattr(client_pool, "CLEAN_INTERVAL", 0.05)
    answer = get(here, topic, f"group={name}&max=1")
    assert members(kafka, name) == 1
    monkeypatch.setattr(client_pool, "IDLE_TIMEOUT", 0.0)
    until(lambda: not members(kafka, name))
    monkeypatch.undo()
    assert values(follow(here, answer)) == ["1"]


def test_a_wait_that_nobody_hears_takes_nothing(here: Any, kafka: str, fresh_topic: Topic) -> None:
    topic, name = fresh_topic(), group()
    url = f"{here.http.base_url}/topics/{topic}/records?group={name}"

    def leave() -> None:
        with pytest.raises(httpx.ReadTimeout):
            httpx.get(url, timeout=httpx.Timeout(30, read=1.0))

    gone = threading.Thread(target=leave)
    gone.start()
    gone.join()
    fill(kafka, topic, numbers(1))
    assert values(get(here, topic, f"group={name}")) == ["0"]
