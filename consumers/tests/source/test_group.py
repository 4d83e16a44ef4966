"""Groups on a real Kafka: sharing, dying, coming back, and what is done."""

import asyncio
import logging
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from nightwire.consumers import AlertReader, GroupError, ReceivedAlert
from nightwire.consumers.source.consumer_group import membership

pytestmark = [pytest.mark.kafka, pytest.mark.usefixtures("quick_group")]

Encode = Callable[..., bytes]
Write = Callable[..., None]
Topic = Callable[..., str]

WAIT = 60.0
"""Longest wait for an alert that must come. [s]"""

EACH = 40
"""Alerts in each partition."""


def group_name() -> str:
    return f"test-{os.urandom(4).hex()}"


def ids(alerts: list[ReceivedAlert]) -> list[int]:
    return [one.alert["diaSourceId"] for one in alerts]


def owned(reader: AlertReader) -> set[int]:
    """Return the partitions that a reader has now."""
    connection = reader._session._connection
    return {partition for _, partition in connection.loop.source._next} if connection else set()


def fill(bootstrap: str, topic: str, encode: Encode, write: Write) -> set[tuple[int, int]]:
    """Write forty alerts to each of four partitions; return where they lie."""
    for partition in range(4):
        write(bootstrap, topic, [encode(number) for number in range(EACH)], partition=partition)
    return {(partition, offset) for partition in range(4) for offset in range(EACH)}


@pytest.fixture
def ten(kafka: str, fresh_topic: Topic, encode: Encode, write: Write) -> str:
    """Return a topic with alerts 0 to 9 in one partition."""
    topic = fresh_topic()
    write(kafka, topic, [encode(number) for number in range(10)])
    return topic


# What is done


def test_a_batch_is_done_when_the_next_is_asked_for(kafka: str, ten: str) -> None:
    group = group_name()
    reader = AlertReader(ten, group=group, bootstrap=kafka, timeout=WAIT)
    batches = reader.batches(size=4)
    assert ids(next(batches)) == [0, 1, 2, 3]
    assert ids(next(batches)) == [4, 5, 6, 7]
    reader.close()  # not in peace: the second is not done
    with AlertReader(ten, group=group, bootstrap=kafka, follow=False) as again:
        assert ids(list(again)) == [4, 5, 6, 7, 8, 9]


def test_leaving_in_peace_finishes_the_batch(kafka: str, ten: str) -> None:
    group = group_name()
    with AlertReader(ten, group=group, bootstrap=kafka, timeout=WAIT) as reader:
        assert len(next(reader.batches(size=4))) == 4
    with AlertReader(ten, group=group, bootstrap=kafka, follow=False) as again:
        assert ids(list(again)) == [4, 5, 6, 7, 8, 9]


def test_leaving_while_a_reader_waits_finishes_nothing_that_was_not_seen(kafka: str, ten: str) -> None:
    group = group_name()

    async def run() -> None:
        async with AlertReader(ten, group=group, bootstrap=kafka) as reader:
            assert (await anext(reader)).offset == 0
            waiting = asyncio.ensure_future(anext(reader))
            await asyncio.sleep(0)
            waiting.cancel()

    asyncio.run(run())
    with AlertReader(ten, group=group, bootstrap=kafka, follow=False) as again:
        assert ids(list(again))[0] == 1


def test_what_expired_is_counted_in_batches_too(kafka: str, ten: str) -> None:
    group = group_name()
    with AlertReader(ten, group=group, bootstrap=kafka, timeout=WAIT) as reader:
        assert len(next(reader.batches(size=2))) == 2
    admin = AdminClient({"bootstrap.servers": kafka})
    for future in admin.delete_records([TopicPartition(ten, 0, 5)]).values():
        future.result()
    with AlertReader(ten, group=group, bootstrap=kafka, follow=False) as reader:
        assert [ids(batch) for batch in reader.batches()] == [[5, 6, 7, 8, 9]]
    assert reader.expired == 3


# Members


@contextmanager
def reading(reader: AlertReader) -> Iterator[list[ReceivedAlert]]:
    """Read in a thread; yield what has come so far."""
    seen: list[ReceivedAlert] = []

    def read() -> None:
        with reader:
            for batch in reader.batches(wait=0.1):
                seen.extend(batch)

    thread = Thread(target=read, daemon=True)
    thread.start()
    yield seen
    thread.join(WAIT)


def until(condition: Callable[[], bool], *, tick: Event) -> None:
    """Wait for *condition*, and fail where it does not come."""
    for _ in range(int(WAIT / 0.05)):
        if condition():
            return
        tick.wait(0.05)
    pytest.fail("it did not come")


HOLDING = """
import sys
from nightwire.consumers import AlertReader

topic, group, bootstrap = sys.argv[1:]
with AlertReader(topic, group=group, bootstrap=bootstrap) as reader:
    print("here", flush=True)
    for number, batch in enumerate(reader.batches(size=10, wait=0.1)):
        if number == 1:
            reader._session.open().loop.source.commit()
        for one in batch:
            print(number, one.partition, one.offset, flush=True)
        if number == 1:
            print("holding", flush=True)
            sys.stdin.read()
"""


@pytest.mark.slow
def test_when_a_member_dies_only_what_it_had_not_done_comes_again(
    kafka: str, fresh_topic: Topic, encode: Encode, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, group, stop = fresh_topic(partitions=4), group_name(), Event()
    monkeypatch.setenv("KAFKA_SESSION_TIMEOUT_MS", "2000")
    survivor = AlertReader(topic, group=group, bootstrap=kafka, dedup="offset", stopped=stop.is_set)
    command = [sys.executable, "-c", HOLDING, topic, group, kafka]
    pipe = subprocess.PIPE
    with (
        reading(survivor) as seen,
        subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as child,
    ):
        assert child.stdout is not None
        until(lambda: len(owned(survivor)) == 2, tick=stop)
        everything = fill(kafka, topic, encode, write)
        lines = iter(child.stdout.readline, "holding\n")
        handed = [tuple(map(int, line.split())) for line in lines if line != "here\n"]
        child.send_signal(signal.SIGKILL)
        done = {(partition, offset) for number, partition, offset in handed if number == 0}
        until(lambda: len(seen) >= len(everything - done), tick=stop)
        stop.set()
    came = [(one.partition, one.offset) for one in seen]
    # each once: what was held comes again, and nothing else
    assert sorted(came) == sorted(everything - done)
    assert len(done) == 10
    assert len(handed) == 20


def test_who_joins_takes_partitions_from_nobody_who_keeps_them(
    kafka: str, fresh_topic: Topic, encode: Encode, write: Write
) -> None:
    topic, group, stop = fresh_topic(partitions=4), group_name(), Event()
    first, second = (AlertReader(topic, group=group, bootstrap=kafka, stopped=stop.is_set) for _ in range(2))
    with reading(first) as one:
        until(lambda: len(owned(first)) == 4, tick=stop)
        source = first._session.open().loop.source  # type: ignore[union-attr]
        given: list[object] = []
        source.assign = lambda *how: given.append(how)  # type: ignore[method-assign, assignment]
        with reading(second) as other:
            until(lambda: len(owned(second)) == 2, tick=stop)
            everything = fill(kafka, topic, encode, write)
            until(lambda: len(one) + len(other) >= len(everything), tick=stop)
            taken = [starts for starts, _ in given if starts]  # type: ignore[misc]
            stop.set()  # the second may leave before the first, which is given its partitions then
    assert sorted((each.partition, each.offset) for each in [*one, *other]) == sorted(everything)
    assert not taken


def test_a_member_with_a_name_comes_back_and_nobody_notices(
    kafka: str,
    fresh_topic: Topic,
    encode: Encode,
    write: Write,
    caplog: pytest.LogCaptureFixture,
) -> None:
    topic, group, stop, pause = fresh_topic(partitions=4), group_name(), Event(), Event()

    def member(name: str, ends: Event) -> AlertReader:
        return AlertReader(topic, group=group, member=name, bootstrap=kafka, stopped=ends.is_set)

    stays, leaves, again = member("b", stop), member("a", pause), member("a", stop)
    with caplog.at_level(logging.INFO), reading(stays) as one:
        with reading(leaves):
            until(lambda: len(owned(stays)) == 2, tick=stop)
            until(lambda: len(owned(leaves)) == 2, tick=stop)
            had = owned(leaves)
            pause.set()
        caplog.clear()
        with reading(again) as other:
            everything = fill(kafka, topic, encode, write)
            until(lambda: len(one) + len(other) >= len(everything), tick=stop)
            assert owned(again) == had
            stop.set()
    given = [line for line in caplog.messages if line.startswith("given") and "no partition" not in line]
    assert given == [f"given {topic}[{first}], {topic}[{second}]" for first, second in [sorted(had)]]
    assert sorted((each.partition, each.offset) for each in [*one, *other]) == sorted(everything)


def test_two_processes_cannot_be_one_member(
    kafka: str, fresh_topic: Topic, encode: Encode, write: Write
) -> None:
    topic, group, stop = fresh_topic(partitions=4), group_name(), Event()
    fill(kafka, topic, encode, write)
    first = AlertReader(topic, group=group, member="a", bootstrap=kafka, timeout=WAIT)
    next(first)  # it is a member before the second comes
    second = AlertReader(topic, group=group, member="a", bootstrap=kafka, stopped=stop.is_set)
    with reading(second):
        with pytest.raises(GroupError, match=rf"fenced.*read as member 'a' of group '{group}'"):
            deque(first, maxlen=0)
        stop.set()
    first.close()


def test_members_of_both_protocols_share_one_group(
    kafka: str, fresh_topic: Topic, encode: Encode, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, group, stop = fresh_topic(partitions=4), group_name(), Event()
    classic, modern = (
        AlertReader(topic, group=group, bootstrap=kafka, stopped=stop.is_set) for _ in range(2)
    )
    with reading(classic) as one:
        until(lambda: len(owned(classic)) == 4, tick=stop)
        monkeypatch.delenv("KAFKA_HEARTBEAT_INTERVAL_MS")  # this protocol leaves it to the broker
        monkeypatch.setenv("KAFKA_GROUP_PROTOCOL", "consumer")
        with reading(modern) as other:
            until(lambda: len(owned(modern)) == 2, tick=stop)
            until(lambda: len(owned(classic)) == 2, tick=stop)
            everything = fill(kafka, topic, encode, write)
            until(lambda: len(one) + len(other) >= len(everything), tick=stop)
            stop.set()
    assert sorted((each.partition, each.offset) for each in [*one, *other]) == sorted(everything)


@pytest.mark.parametrize(
    ("member", "asked", "expected"),
    [
        (None, {}, {"session_timeout_ms": 10_000, "partition_assignment_strategy": "cooperative-sticky"}),
        (
            "a",
            {},
            {
                "session_timeout_ms": 45_000,
                "partition_assignment_strategy": "cooperative-sticky",
                "group_instance_id": "a",
            },
        ),
        (None, {"session.timeout.ms": "6000"}, {"partition_assignment_strategy": "cooperative-sticky"}),
        # the broker decides the rest
        ("a", {"group.protocol": "consumer"}, {"group_instance_id": "a"}),
    ],
)
def test_a_membership_has_these_properties(
    member: str | None, asked: dict[str, str], expected: dict[str, object]
) -> None:
    assert membership(member, asked) == expected
