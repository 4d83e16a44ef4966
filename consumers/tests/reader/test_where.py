"""Reading from a real Kafka what a condition leaves, and going on behind what it does not."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import chain, islice
from threading import Thread

import pytest
from confluent_kafka import TopicPartition

from nightwire.consumers import AlertReader, BadRecord
from nightwire.core.kafka import consumer, ensure_topics
from nightwire.core.subscriptions import SubscriptionFollower
from nightwire.schemas.records import VISIT
from nightwire.schemas.topics import SUBSCRIPTIONS, VISITS, TopicSettings, settings
from tests._waiting import until

pytestmark = pytest.mark.kafka

Encode = Callable[..., bytes]
Write = Callable[..., None]
Topic = Callable[..., str]

WAIT = 60.0
"""Longest wait for an alert that must come. [s]"""
THIRD = "diaSourceId % 3 = 1"
"""Holds for offsets 0, 3, 6, … of alerts 1, 2, 3, …."""


def offsets(reader: AlertReader) -> list[int]:
    return [received.offset for received in reader]


def committed(bootstrap: str, group: str, topic: str) -> int:
    with consumer(bootstrap, group=group) as client:
        return int(client.committed([TopicPartition(topic, 0)], timeout=60)[0].offset)


@pytest.fixture
def group() -> str:
    return f"test-{os.urandom(4).hex()}"


@pytest.fixture
def hundred(kafka: str, fresh_topic: Topic, encode: Encode, write: Write) -> str:
    """Return a topic with alerts 1 to 100 in one partition."""
    topic = fresh_topic()
    write(kafka, topic, [encode(number) for number in range(1, 101)])
    return topic


def test_one_by_one_in_batches_and_tables(kafka: str, hundred: str) -> None:
    expected = list(range(0, 100, 3))
    with AlertReader(hundred, where=THIRD, bootstrap=kafka, follow=False) as reader:
        assert offsets(reader) == expected
        assert (reader.count, reader.filtered, reader.faulted) == (34, 66, 0)
    with AlertReader(hundred, where=THIRD, bootstrap=kafka, follow=False) as reader:
        batches = [[one.offset for one in batch] for batch in reader.batches(size=10)]
        assert ([*chain(*batches)], max(map(len, batches))) == (expected, 10)
    with AlertReader(hundred, where=THIRD, bootstrap=kafka, follow=False) as reader:
        tables = reader.tables(["diaSourceId"], metadata=["offset"], size=10)
        assert [*chain(*(table["offset"].to_pylist() for table in tables))] == expected


def test_a_batch_goes_out_as_soon_as_it_is_full(kafka: str, hundred: str) -> None:
    with AlertReader(hundred, where=THIRD, bootstrap=kafka, start="beginning") as reader:
        batch = next(reader.batches(size=10, wait=600))
        assert [one.offset for one in batch] == [*range(0, 30, 3)]


def test_what_is_judged_twice_is_counted_once(kafka: str, hundred: str, encode: Encode, write: Write) -> None:
    write(kafka, hundred, [b"garbage", encode(102)])
    told: list[BadRecord] = []
    with AlertReader(hundred, where=THIRD, bootstrap=kafka, follow=False, on_bad=told.append) as reader:
        batches = reader.batches(size=40)
        batches._next_batch()  # its caller was cancelled: nothing is handed out
        assert offsets(reader) == list(range(0, 100, 3))
        assert (reader.count, reader.filtered, reader.undecodable, len(told)) == (34, 67, 1, 1)


def test_a_limit_and_the_last_and_nothing(kafka: str, hundred: str) -> None:
    with AlertReader(hundred, where=THIRD, bootstrap=kafka, follow=False, limit=5) as reader:
        assert (offsets(reader), reader.filtered) == ([0, 3, 6, 9, 12], 8)
    with AlertReader(hundred, where=THIRD, bootstrap=kafka, follow=False, last=10) as reader:
        assert offsets(reader) == [90, 93, 96, 99]
    with AlertReader(hundred, where="flux < 0", bootstrap=kafka, start="beginning", timeout=1.0) as reader:
        assert (offsets(reader), reader.filtered) == ([], 100)


def test_duplicates_of_what_passes(kafka: str, hundred: str, encode: Encode, write: Write) -> None:
    write(kafka, hundred, [encode(number) for number in range(1, 7)])
    with AlertReader(hundred, where=THIRD, bootstrap=kafka, follow=False, dedup="alert") as reader:
        assert offsets(reader) == list(range(0, 100, 3))
        assert (reader.duplicates, reader.filtered) == (2, 70)


def test_a_visit(kafka: str, encode: Encode, write: Write) -> None:
    survey = f"s{os.urandom(4).hex()}"
    topic = f"alerts.{survey}"
    ensure_topics(kafka, [TopicSettings(topic, 1)])
    for visit in (1, 2):
        headers = [("survey", b"sim"), ("visit", b"%d" % visit)]
        write(kafka, topic, [encode(one) for one in range(1, 10)], headers=headers)
    now = datetime.now(UTC)
    span = [{"partition": 0, "first": 9, "last": 17}]
    record = {"survey": survey, "visit": 2, "opened": now, "closed": now, "partitions": span}
    write(kafka, VISITS, [VISIT.encode(record)], key=f"{survey}/2".encode(), headers=[])
    with AlertReader(topic, where=THIRD, visit=2, bootstrap=kafka, timeout=WAIT) as reader:
        assert [one.offset for one in reader] == [9, 12, 15]


def test_a_group_goes_on_behind_what_was_left_out(
    kafka: str, hundred: str, group: str, encode: Encode, write: Write
) -> None:
    with AlertReader(hundred, where=THIRD, group=group, bootstrap=kafka, limit=3, timeout=WAIT) as reader:
        assert offsets(reader) == [0, 3, 6]
    assert committed(kafka, group, hundred) == 7
    with AlertReader(hundred, where="flux < 0", group=group, bootstrap=kafka, follow=False) as reader:
        assert offsets(reader) == []
    assert committed(kafka, group, hundred) == 100


def test_bad_records_are_reported_wherever_they_lie(
    kafka: str, hundred: str, encode: Encode, write: Write
) -> None:
    bad: list[BadRecord] = []
    write(kafka, hundred, [b"garbage", encode(102), encode(103)])
    with AlertReader(
        hundred, where=THIRD, bootstrap=kafka, last=3, follow=False, on_bad=bad.append
    ) as reader:
        assert offsets(reader) == [102]
    assert [(one.offset, one.value) for one in bad] == [(100, b"garbage")]
    assert (reader.undecodable, reader.filtered) == (1, 1)


def test_a_wrong_condition_is_refused_before_kafka_is_asked() -> None:
    with pytest.raises(ValueError, match=r"where: line 1, column 12: "):
        AlertReader("alerts.sim", where="magnitude < ", bootstrap="127.0.0.1:9")


CRASHING = """
import sys
import time
from nightwire.consumers import AlertReader

topic, group, bootstrap, where = sys.argv[1:]
with AlertReader(topic, where=where, group=group, bootstrap=bootstrap, commit_interval=0.0) as reader:
    for received in reader:
        print(received.offset, flush=True)
        if received.offset == 18:
            reader._session.open().loop.source.commit()  # wait until those before are kept
            print("holding", flush=True)
            sys.stdin.read()
"""


@pytest.mark.slow
def test_after_kill_9_only_what_was_not_done_comes_again(
    kafka: str, hundred: str, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_SESSION_TIMEOUT_MS", "2000")
    monkeypatch.setenv("KAFKA_HEARTBEAT_INTERVAL_MS", "300")
    command = [sys.executable, "-c", CRASHING, hundred, group, kafka, THIRD]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        lines = list(iter(child.stdout.readline, "holding\n"))
        child.send_signal(signal.SIGKILL)
    assert [int(line) for line in lines] == list(range(0, 19, 3))
    with AlertReader(
        hundred, where=THIRD, group=group, bootstrap=kafka, follow=False, timeout=WAIT
    ) as reader:
        assert offsets(reader) == list(range(18, 100, 3))


def test_what_is_read_is_told_to_others_as_long_as_it_is(kafka: str, hundred: str) -> None:
    ensure_topics(kafka, [settings(SUBSCRIPTIONS)])

    def told() -> list[str]:
        return [one.record["condition"] for one in follower.live(hundred)]

    with SubscriptionFollower(kafka) as follower:
        with AlertReader(
            hundred, where=THIRD, announce=True, bootstrap=kafka, last=1, timeout=WAIT
        ) as reader:
            assert next(reader).offset == 99
            until(lambda: told() == [THIRD])
        until(lambda: told() == [])


@pytest.mark.usefixtures("quick_group")
def test_a_member_that_has_judged_ahead_still_hears_of_its_group(
    kafka: str, fresh_topic: Topic, group: str, encode: Encode, write: Write
) -> None:
    topic = fresh_topic(partitions=2)
    for partition in (0, 1):
        write(kafka, topic, [encode(number) for number in range(1, 41)], partition=partition)
    by_first, by_second = list[tuple[int, int]](), list[tuple[int, int]]()

    def take(reader: AlertReader, places: list[tuple[int, int]]) -> None:
        places.extend((one.partition, one.offset) for one in islice(reader, 1))

    def second() -> None:
        with AlertReader(topic, where="TRUE", group=group, bootstrap=kafka, limit=1, timeout=WAIT) as reader:
            take(reader, by_second)

    other = Thread(target=second)
    with AlertReader(topic, where="TRUE", group=group, bootstrap=kafka, timeout=WAIT) as first:
        take(first, by_first)
        other.start()
        while other.is_alive():  # every record lies here already, judged and not handed out
            take(first, by_first)
            other.join(0.2)
        deadline = time.monotonic() + 2 * WAIT
        while len({*by_first, *by_second}) < 80 and time.monotonic() < deadline:
            take(first, by_first)
    assert (len(by_second), len({*by_first, *by_second})) == (1, 80)


def test_a_misspelt_field_of_voevents_is_named(kafka: str, registry_url: str) -> None:
    reader = AlertReader("voevents", where="rolle = 'test'", bootstrap=kafka, registry=registry_url)
    with pytest.raises(ValueError, match="alerts of voevents have no field rolle; did you mean role"):
        reader.open()
