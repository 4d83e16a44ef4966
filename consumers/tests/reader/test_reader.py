"""Reading from a real Kafka: live, since a time, the last N, in groups."""

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from threading import Event, Thread

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from conftest import mock_cluster
from nightwire.consumers import AlertReader, BadRecord, TopicError
from nightwire.consumers.source import ArchivedSource
from nightwire.consumers.source.plan import Plan
from nightwire.consumers.source.record_source import RecordSource
from nightwire.consumers.source.start_offsets import StartOffset
from nightwire.core.kafka import consumer, ensure_topics
from nightwire.core.presence import ArchiveClient
from nightwire.core.stack import Broker, free_port
from nightwire.schemas import SchemaError, SchemaRegistry
from nightwire.schemas.topics import TopicSettings

pytestmark = pytest.mark.kafka

Encode = Callable[..., bytes]
Write = Callable[..., None]
Topic = Callable[..., str]

WAIT = 60.0
"""Longest wait for an alert that must come. [s]"""


def ids(reader: AlertReader) -> list[int]:
    return [received.alert["diaSourceId"] for received in reader]


def joined(reader: AlertReader) -> bool:
    """Whether a group has given partitions to *reader*."""
    return bool(reader._session.open().loop.source._next)


def group_name() -> str:
    return f"test-{os.urandom(4).hex()}"


def committed(bootstrap: str, group: str, topic: str) -> int:
    with consumer(bootstrap, group=group) as client:
        return int(client.committed([TopicPartition(topic, 0)], timeout=60)[0].offset)


@pytest.fixture
def old(kafka: str, fresh_topic: Topic, encode: Encode, write: Write) -> str:
    """Return a topic with three partitions and alerts 0 to 11, a minute apart, until now."""
    topic = fresh_topic(partitions=3)
    now = int(datetime.now(UTC).timestamp() * 1000)
    for number in range(12):
        partition = 0 if number < 8 else number % 3  # most of the old ones in one partition
        write(kafka, topic, [encode(number)], partition=partition, timestamp_ms=now - (11 - number) * 60_000)
    return topic


def test_without_a_group_it_begins_live_and_sees_every_partition(
    kafka: str, old: str, encode: Encode, write: Write
) -> None:
    with AlertReader(old, bootstrap=kafka, limit=3, timeout=WAIT) as reader:
        for partition in range(3):
            write(kafka, old, [encode(100 + partition)], partition=partition)
        assert sorted(ids(reader)) == [100, 101, 102]


def test_without_following_it_reads_what_is_there_and_ends(kafka: str, old: str) -> None:
    with AlertReader(old, bootstrap=kafka, follow=False) as reader:
        assert sorted(ids(reader)) == list(range(12))


def test_an_empty_topic_has_an_end(kafka: str, fresh_topic: Topic) -> None:
    topic = fresh_topic(partitions=2)
    for how in ({}, {"last": 5}, {"since": timedelta(hours=1)}, {"group": group_name()}):
        with AlertReader(topic, bootstrap=kafka, follow=False, **how) as reader:
            assert ids(reader) == []


@pytest.mark.parametrize("count", [1, 3, 5, 12, 100])
def test_the_last_n_are_the_topics_by_time(kafka: str, old: str, count: int) -> None:
    with AlertReader(old, bootstrap=kafka, last=count, follow=False) as reader:
        assert ids(reader) == list(range(12))[-count:]


def test_after_the_last_n_it_goes_on_live_without_a_gap(
    kafka: str, old: str, encode: Encode, write: Write
) -> None:
    with AlertReader(old, bootstrap=kafka, last=2, limit=5, timeout=WAIT) as reader:
        write(kafka, old, [encode(100 + number) for number in range(3)], partition=1)
        assert ids(reader) == [10, 11, 100, 101, 102]


def test_after_the_last_n_it_follows_partitions_that_were_empty(
    kafka: str, fresh_topic: Topic, encode: Encode, write: Write
) -> None:
    topic = fresh_topic(partitions=2)
    write(kafka, topic, [encode(1)], partition=0)
    with AlertReader(topic, bootstrap=kafka, last=2, limit=2, timeout=WAIT) as reader:
        write(kafka, topic, [encode(2)], partition=1)
        assert ids(reader) == [1, 2]


def test_the_last_n_are_those_of_each_topic(
    kafka: str, old: str, fresh_topic: Topic, encode: Encode, write: Write
) -> None:
    other = fresh_topic()
    write(kafka, other, [encode(50), encode(51)], timestamp_ms=1_000_000)
    with AlertReader([old, other], bootstrap=kafka, last=1, follow=False) as reader:
        assert ids(reader) == [51, 11]


@pytest.mark.parametrize(("minutes", "expected"), [(3.5, [8, 9, 10, 11]), (0.5, [11]), (60, list(range(12)))])
def test_since_a_time(kafka: str, old: str, minutes: float, expected: list[int]) -> None:
    since = timedelta(minutes=minutes)
    with AlertReader(old, bootstrap=kafka, since=since, follow=False) as reader:
        assert sorted(ids(reader)) == expected


def test_since_a_time_after_the_newest_begins_at_the_end(
    kafka: str, old: str, encode: Encode, write: Write
) -> None:
    later = datetime.now(UTC) + timedelta(minutes=1)
    with AlertReader(old, bootstrap=kafka, since=later, limit=1, timeout=WAIT) as reader:
        write(kafka, old, [encode(100)], partition=2)
        assert ids(reader) == [100]


def test_without_a_group_nothing_is_committed(kafka: str, old: str) -> None:
    with AlertReader(old, bootstrap=kafka, follow=False) as reader:
        assert len(ids(reader)) == 12
    groups = AdminClient({"bootstrap.servers": kafka}).list_consumer_groups().result().valid
    assert not [group.group_id for group in groups if group.group_id.startswith("nightwire-")]


def test_it_ends_when_nothing_comes_in_time(kafka: str, old: str) -> None:
    with AlertReader(old, bootstrap=kafka, timeout=0.3) as reader:
        assert ids(reader) == []


def test_a_topic_that_is_not_there_is_named_with_those_that_are(kafka: str, old: str) -> None:
    with pytest.raises(TopicError, match=rf"no topic alerts\.nowhere; there are: .*{old}"):
        AlertReader(["alerts.nowhere", old], bootstrap=kafka).open()


# Groups


@pytest.fixture
def ten(kafka: str, fresh_topic: Topic, encode: Encode, write: Write) -> str:
    """Return a topic with alerts 0 to 9 in one partition."""
    topic = fresh_topic()
    write(kafka, topic, [encode(number) for number in range(10)])
    return topic


def test_a_new_group_begins_with_the_oldest_and_goes_on(kafka: str, ten: str) -> None:
    group = group_name()
    with AlertReader(ten, group=group, bootstrap=kafka, limit=4, timeout=WAIT) as reader:
        assert ids(reader) == [0, 1, 2, 3]
    assert committed(kafka, group, ten) == 4
    with AlertReader(ten, group=group, bootstrap=kafka, follow=False) as reader:
        assert ids(reader) == [4, 5, 6, 7, 8, 9]
    with AlertReader(ten, group=group, bootstrap=kafka, follow=False) as reader:
        assert ids(reader) == []


def test_an_exception_leaves_the_alert_undone(kafka: str, ten: str) -> None:
    group = group_name()
    seen = []
    with (  # noqa: PT012
        pytest.raises(RuntimeError, match="the third"),
        AlertReader(ten, group=group, bootstrap=kafka, timeout=WAIT) as reader,
    ):
        for received in reader:
            seen.append(received.offset)
            if received.offset == 2:
                raise RuntimeError("the third")
    assert seen == [0, 1, 2]
    with AlertReader(ten, group=group, bootstrap=kafka, follow=False) as reader:
        assert ids(reader)[0] == 2


def test_leaving_the_block_in_peace_finishes_the_alert(kafka: str, ten: str) -> None:
    group = group_name()
    with AlertReader(ten, group=group, bootstrap=kafka, timeout=WAIT) as reader:
        for received in reader:
            if received.offset == 2:
                break
    assert committed(kafka, group, ten) == 3


def test_a_new_live_group_keeps_where_live_was(kafka: str, ten: str, encode: Encode, write: Write) -> None:
    group = group_name()
    reader = AlertReader(ten, group=group, start="live", bootstrap=kafka, stopped=lambda: joined(reader))
    with reader:
        assert ids(reader) == []
    write(kafka, ten, [encode(10)])
    with AlertReader(ten, group=group, start="live", bootstrap=kafka, follow=False) as reader:
        assert ids(reader) == [10]


def test_since_is_where_a_new_group_begins(kafka: str, old: str) -> None:
    group = group_name()
    for expected in ([8, 9, 10, 11], []):
        with AlertReader(
            old, group=group, since=timedelta(minutes=3.5), bootstrap=kafka, follow=False
        ) as reader:
            assert sorted(ids(reader)) == expected


CRASHING = """
import sys
from nightwire.consumers import AlertReader

topic, group, bootstrap = sys.argv[1:]
with AlertReader(topic, group=group, bootstrap=bootstrap, commit_interval=0.0) as reader:
    for received in reader:
        print(received.offset, flush=True)
        if received.offset == 6:
            reader._session.open().loop.source.commit()  # wait until those before are kept
            print("holding", flush=True)
            sys.stdin.read()
"""


@pytest.mark.slow
def test_after_kill_9_only_what_was_not_done_comes_again(
    kafka: str, ten: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = group_name()
    monkeypatch.setenv("KAFKA_SESSION_TIMEOUT_MS", "2000")
    monkeypatch.setenv("KAFKA_HEARTBEAT_INTERVAL_MS", "300")
    child = subprocess.Popen(
        [sys.executable, "-c", CRASHING, ten, group, kafka],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with child:
        lines = list(_until(child, "holding"))
        child.send_signal(signal.SIGKILL)
    assert lines == ["0", "1", "2", "3", "4", "5", "6"]
    with AlertReader(ten, group=group, bootstrap=kafka, follow=False, timeout=WAIT) as reader:
        assert ids(reader) == [6, 7, 8, 9]


def _until(child: "subprocess.Popen[str]", word: str) -> Iterator[str]:
    assert child.stdout is not None
    for line in child.stdout:
        if line.strip() == word:
            return
        yield line.strip()


@pytest.mark.usefixtures("quick_group")
def test_two_members_share_a_topic_and_lose_nothing_when_one_leaves(
    kafka: str, fresh_topic: Topic, encode: Encode, write: Write
) -> None:
    topic, group = fresh_topic(partitions=4), group_name()
    numbers = count()
    by_second: list[int] = []

    def second() -> None:
        with AlertReader(topic, group=group, bootstrap=kafka, limit=5, timeout=WAIT) as reader:
            by_second.extend(ids(reader))

    other = Thread(target=second)
    with AlertReader(topic, group=group, bootstrap=kafka, timeout=0.3) as first:
        by_first = ids(first)
        other.start()
        while other.is_alive():  # the other one joins when the first asks for more
            for partition in range(4):
                write(kafka, topic, [encode(next(numbers))], partition=partition)
            by_first += ids(first)
        everything, deadline = set(range(next(numbers))), time.monotonic() + WAIT
        while set(by_first) | set(by_second) != everything and time.monotonic() < deadline:
            by_first += ids(first)  # the partitions come back to it
    assert len(by_second) == 5
    assert set(by_first) | set(by_second) == everything


@pytest.mark.slow
def test_a_broker_that_dies_and_returns_is_waited_for(
    fresh_broker: Broker, encode: Encode, write: Write
) -> None:
    topic, group = "alerts.sim", group_name()
    ensure_topics(fresh_broker.bootstrap, [TopicSettings(topic, 1)])
    write(fresh_broker.bootstrap, topic, [encode(0), encode(1)])
    with AlertReader(topic, group=group, bootstrap=fresh_broker.bootstrap, timeout=90) as reader:
        seen = [next(reader).offset]
        fresh_broker.kill()
        fresh_broker.start()
        write(fresh_broker.bootstrap, topic, [encode(2), encode(3)])
        while seen[-1] != 3:
            seen.append(next(reader).offset)
    # a slow start costs the membership: then some come again
    assert sorted(set(seen)) == [0, 1, 2, 3]
    assert committed(fresh_broker.bootstrap, group, topic) == 4


# What is bad, and what is gone


def test_what_cannot_be_decoded_is_counted_said_and_passed_over(
    kafka: str, ten: str, encode: Encode, write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    bad: list[BadRecord] = []
    write(kafka, ten, [b"garbage", encode(11)[:40], b"Obj\x01", b"", encode(14)])
    group = group_name()
    with (
        caplog.at_level(logging.WARNING),
        AlertReader(ten, group=group, bootstrap=kafka, follow=False, on_bad=bad.append) as reader,
    ):
        assert ids(reader) == [*range(10), 14]
    assert reader.undecodable == 4
    assert (bad[0].offset, bad[0].value) == (10, b"garbage")
    assert f"{ten}[0]@10 cannot be decoded (1 so far): not in wire format" in caplog.text
    assert committed(kafka, group, ten) == 15


def test_a_schema_that_cannot_be_had_stops_it_and_names_the_alert(kafka: str, ten: str, write: Write) -> None:
    group = group_name()
    write(kafka, ten, [b"\x00\x00\x00\x0b\xb7body"])  # nobody has schema 2999
    with (
        pytest.raises(SchemaError, match=rf"{ten}\[0\]@10 waits for its schema.*--registry"),
        AlertReader(ten, group=group, bootstrap=kafka, follow=False) as reader,
    ):
        ids(reader)
    assert committed(kafka, group, ten) == 10


def test_who_waits_for_the_registry_says_so_once(
    kafka: str, ten: str, write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    write(kafka, ten, [b"\x00\x00\x00\x0b\xb7body"])  # nobody has schema 2999
    away, asked = f"http://127.0.0.1:{free_port()}", count()
    with (
        pytest.raises(SchemaError, match="waits for its schema"),
        AlertReader(ten, bootstrap=kafka, registry=away, last=1, stopped=lambda: next(asked) > 6) as reader,
    ):
        ids(reader)
    assert caplog.text.count("waiting for the schema registry") == 1


def delete_before(bootstrap: str, topic: str, offset: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.delete_records([TopicPartition(topic, 0, offset)]).values():
        future.result()


def test_what_expired_is_said_and_counted_and_it_goes_on_with_the_oldest(kafka: str, ten: str) -> None:
    group = group_name()
    with AlertReader(ten, group=group, bootstrap=kafka, limit=2, timeout=WAIT) as reader:
        assert ids(reader) == [0, 1]
    delete_before(kafka, ten, 5)
    with AlertReader(ten, group=group, bootstrap=kafka, follow=False) as reader:
        assert ids(reader) == [5, 6, 7, 8, 9]
    assert reader.expired == 3


@pytest.mark.parametrize("archive", [False, True])
def test_what_expires_under_way_is_counted_too(kafka: str, ten: str, archive: bool) -> None:
    """Of what no survey sends the archive has nothing, and is not waited for."""
    client: Consumer = consumer(kafka, enable_partition_eof=True)
    plan = Plan([ten], follow=False, since=timedelta(hours=1) if archive else None)
    away = ArchiveClient(f"http://127.0.0.1:{free_port()}")
    source = ArchivedSource(client, plan, away) if archive else RecordSource(client, plan)
    delete_before(kafka, ten, 5)
    source.assign({(ten, 0): StartOffset(1)}, {(ten, 0): 10})
    offsets = []
    deadline = time.monotonic() + WAIT
    while not source.at_end and time.monotonic() < deadline:
        offsets += [message.offset() for message in source.take(100, 0.2)]
    source.close()
    assert offsets == [5, 6, 7, 8, 9]
    assert source.expired == 4


def test_when_kafka_was_away_it_is_asked_whose_schemas_those_in_memory_are(
    monkeypatch: pytest.MonkeyPatch, encode: Encode, write: Write
) -> None:
    """Another stack may have taken the addresses, where an id means another schema."""
    (host, address), doubted = mock_cluster(), Event()
    write(address, "alerts.sim", [encode(1)])
    monkeypatch.setattr(SchemaRegistry, "doubt", lambda _: doubted.set())
    with AlertReader("alerts.sim", bootstrap=address, stopped=doubted.is_set, timeout=WAIT) as reader:
        reader._session.open()
        assert not doubted.is_set()
        host.close()
        del host
        assert not list(reader)
    assert doubted.is_set()
