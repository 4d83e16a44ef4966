"""Topics that are chosen anew while they are read, on a real Kafka."""

import logging
import os
from collections.abc import Callable

import pytest

from nightwire.consumers import AlertReader
from nightwire.consumers.source import StartMode, chosen_topics

pytestmark = [pytest.mark.kafka, pytest.mark.usefixtures("quick_group")]

Encode = Callable[..., bytes]
Write = Callable[..., None]
Topic = Callable[..., str]

WAIT = 60.0
"""Longest wait for an alert that must come. [s]"""


@pytest.fixture(autouse=True)
def _looking_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a reader look at what is chosen before each poll."""
    monkeypatch.setattr(chosen_topics, "LOOK", 0.0)


def number(reader: AlertReader) -> int:
    found: int = next(reader).alert["diaSourceId"]
    return found


@pytest.mark.parametrize("grouped", [False, True])
def test_topics_join_leave_and_go_on_where_they_were_left(
    kafka: str, fresh_topic: Topic, encode: Encode, write: Write, grouped: bool
) -> None:
    one = fresh_topic("one")
    write(kafka, one, [encode(1)])
    chosen, group = [one], f"test-{os.urandom(4).hex()}" if grouped else None
    start: StartMode | None = None if grouped else "beginning"
    with AlertReader(lambda: [*chosen], group=group, start=start, bootstrap=kafka, timeout=WAIT) as reader:
        assert number(reader) == 1
        two = fresh_topic("two")
        write(kafka, two, [encode(2), encode(3)])
        chosen[:] = [one, two]
        assert [number(reader), number(reader)] == [2, 3]
        chosen[:] = [two]
        while one in sources_topics(reader):
            reader._session.open().loop.source.take(0, 0.1)
        write(kafka, one, [encode(4)])
        write(kafka, two, [encode(5)])
        assert number(reader) == 5
        chosen[:] = [one]
        assert number(reader) == 4
        chosen[:] = []
        while sources_topics(reader):
            reader._session.open().loop.source.take(0, 0.1)
        write(kafka, two, [encode(6)])
        chosen[:] = [two]
        assert number(reader) == 6


def sources_topics(reader: AlertReader) -> set[str]:
    return {topic for topic, _ in reader._session.open().loop.source._next}


def test_of_an_old_topic_that_is_chosen_later_comes_what_is_new(
    kafka: str, fresh_topic: Topic, encode: Encode, write: Write
) -> None:
    old = fresh_topic("old")
    write(kafka, old, [encode(7)])
    chosen: list[str] = []
    with AlertReader(lambda: [*chosen], bootstrap=kafka, timeout=WAIT) as reader:
        write(kafka, old, [encode(8)])
        chosen[:] = [old]
        assert number(reader) == 8


def test_a_topic_that_begins_before_the_reader_is_open_is_read(
    kafka: str, fresh_topic: Topic, encode: Encode, write: Write
) -> None:
    chosen: list[str] = []
    reader = AlertReader(lambda: [*chosen], last=5, bootstrap=kafka, timeout=WAIT)
    chosen.append(fresh_topic("between"))
    write(kafka, chosen[0], [encode(9)])
    with reader:
        assert number(reader) == 9


def test_the_newest_come_first_and_then_what_is_chosen_later(
    kafka: str, fresh_topic: Topic, encode: Encode, write: Write
) -> None:
    one = fresh_topic("one")
    write(kafka, one, [encode(1), encode(2)])
    chosen = [one]
    with AlertReader(lambda: [*chosen], last=1, bootstrap=kafka, timeout=WAIT) as reader:
        two = fresh_topic("two")
        write(kafka, two, [encode(3), encode(4)])
        chosen.append(two)
        assert [number(reader), number(reader), number(reader)] == [2, 3, 4]


@pytest.mark.parametrize("group", [None, "test-nowhere"])
def test_a_topic_that_is_not_there_is_said_once_and_the_others_are_read(
    kafka: str,
    fresh_topic: Topic,
    encode: Encode,
    write: Write,
    group: str | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    one = fresh_topic("one")
    write(kafka, one, [encode(1), encode(2)])
    start: StartMode = "beginning"
    with (
        caplog.at_level(logging.WARNING),
        AlertReader(
            lambda: [one, "nowhere"], group=group, start=start, bootstrap=kafka, timeout=WAIT
        ) as reader,
    ):
        assert [number(reader), number(reader)] == [1, 2]
    assert caplog.text.count("nowhere cannot be read") == 1
