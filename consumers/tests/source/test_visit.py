"""Reading one visit, on a real Kafka."""

import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from threading import Thread
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from nightwire.consumers import AlertReader, ReceivedAlert, TopicError
from nightwire.consumers.source.start_offsets import StartOffset, start_of_range
from nightwire.core.kafka import Watermarks, ensure_topics
from nightwire.schemas.records import VISIT
from nightwire.schemas.topics import VISITS, TopicSettings

pytestmark = pytest.mark.kafka

Encode = Callable[..., bytes]
Write = Callable[..., None]

WAIT = 60.0


class Stage:
    """A survey of two partitions whose visits a test plays."""

    def __init__(self, kafka: str, encode: Encode, write: Write) -> None:
        self.kafka, self._encode, self._write = kafka, encode, write
        self.survey = f"s{os.urandom(4).hex()}"
        self.topic = f"alerts.{self.survey}"
        self.opened = datetime.now(UTC)
        ensure_topics(kafka, [TopicSettings(self.topic, 2)])

    def alerts(self, visit: int, numbers: Sequence[int], partition: int) -> None:
        """Write alerts of a visit."""
        headers = [("survey", b"sim"), ("visit", b"%d" % visit)]
        self._write(
            self.kafka,
            self.topic,
            [self._encode(one) for one in numbers],
            partition=partition,
            headers=headers,
        )

    def record(self, visit: int, *ranges: tuple[int, int, int], closed: bool = True) -> None:
        """Write the record of a visit: ranges of partition, first and last offset."""
        record: dict[str, Any] = {
            "survey": self.survey,
            "visit": visit,
            "opened": self.opened,
            "closed": datetime.now(UTC) if closed else None,
            "partitions": [{"partition": part, "first": first, "last": last} for part, first, last in ranges],
        }
        key = f"{self.survey}/{visit}".encode()
        self._write(self.kafka, VISITS, [VISIT.encode(record)], key=key, headers=[])

    def reader(self, visit: int, **how: Any) -> AlertReader:
        """Return a reader of a visit."""
        return AlertReader(self.topic, visit=visit, bootstrap=self.kafka, timeout=WAIT, **how)


@pytest.fixture
def stage(kafka: str, encode: Encode, write: Write) -> Stage:
    """Return a survey with visit 1, between others, closed."""
    one = Stage(kafka, encode, write)
    one.alerts(0, [100, 101], 0)
    one.alerts(1, [1, 2], 0)
    one.alerts(0, [102], 0)  # two visits at once
    one.alerts(1, [3], 0)
    one.alerts(1, [4], 1)
    one.alerts(2, [200, 201], 0)
    one.record(1, (0, 2, 5), (1, 0, 0))
    return one


def ids(alerts: Sequence[ReceivedAlert]) -> list[int]:
    return sorted(one.alert["diaSourceId"] for one in alerts)


def test_a_visit_is_its_own_alerts_and_ends(stage: Stage) -> None:
    with stage.reader(1) as reader:
        assert ids(list(reader)) == [1, 2, 3, 4]
    with stage.reader(1) as reader:
        assert ids([one for batch in reader.batches(size=3) for one in batch]) == [1, 2, 3, 4]


def test_a_visit_without_alerts_ends_at_once(stage: Stage) -> None:
    stage.record(3)
    with stage.reader(3) as reader:
        assert list(reader) == []


def test_an_open_visit_is_followed_until_it_closes(stage: Stage) -> None:
    stage.record(5, closed=False)
    stage.alerts(5, [50], 0)
    seen = []
    with stage.reader(5) as reader:
        seen.append(next(reader))
        stage.alerts(6, [60], 0)  # the next one has begun
        stage.alerts(5, [51, 52], 1)
        closing = Thread(target=stage.record, args=(5, (0, 8, 8), (1, 1, 2)))
        closing.start()
        seen += list(reader)
        closing.join()
    assert ids(seen) == [50, 51, 52]


def test_an_open_visit_can_be_read_as_far_as_it_is(stage: Stage) -> None:
    stage.record(5, closed=False)
    stage.alerts(5, [50], 0)
    with stage.reader(5, follow=False) as reader:
        assert ids(list(reader)) == [50]


def test_what_expired_of_a_visit_is_counted(stage: Stage) -> None:
    admin = AdminClient({"bootstrap.servers": stage.kafka})
    for future in admin.delete_records([TopicPartition(stage.topic, 0, 4)]).values():
        future.result()
    with stage.reader(1) as reader:
        assert ids(list(reader)) == [3, 4]
    assert reader.expired == 2


def test_a_visit_that_is_not_there_is_named_with_those_that_are(stage: Stage) -> None:
    stage.record(3)
    with pytest.raises(TopicError, match=rf"no visit 9 of {stage.topic}; there are 2, 1 to 3"):
        stage.reader(9).open()


def test_a_topic_that_is_no_surveys_has_no_visits(kafka: str, fresh_topic: Callable[..., str]) -> None:
    with pytest.raises(TopicError, match=r"visits lie in topics alerts.<survey>"):
        AlertReader(fresh_topic(), visit=1, bootstrap=kafka).open()


def test_a_visit_goes_with_neither_a_group_nor_a_time() -> None:
    with pytest.raises(ValueError, match=r"since and visit exclude each other; visit reads without a group"):
        AlertReader("alerts.sim", visit=1, group="g", since=timedelta(hours=1), bootstrap="x:1")


@pytest.mark.parametrize(
    ("wanted", "there", "expected"),
    [
        ((3, 9), (0, 20), StartOffset(3)),
        ((3, 9), (5, 20), StartOffset(5, expired=2)),
        ((3, 9), (12, 20), StartOffset(9, expired=6)),
    ],
)
def test_what_is_left_of_a_visit_is_where_it_begins(
    wanted: tuple[int, int], there: tuple[int, int], expected: StartOffset
) -> None:
    assert start_of_range(*wanted, Watermarks(*there)) == expected
