"""The writer keeps its word, and reading to the end reads all."""

import os
from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any, cast
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from nightwire.core.kafka import (
    DeliveryError,
    Writer,
    consumer,
    ensure_topics,
    producer,
    properties,
    read_to_end,
    retry_while_unavailable,
    watermarks,
)
from nightwire.core.kafka.offsets import END, list_offsets
from nightwire.core.runtime import Stop
from nightwire.core.stack import free_port
from nightwire.schemas.topics import TopicSettings
from tests._waiting import until


def test_properties_come_from_the_environment_by_one_rule() -> None:
    environment = {"KAFKA_SASL_USERNAME": "me", "KAFKA_BOOTSTRAP_SERVERS": "x:1", "HOME": "/"}
    assert properties(environment) == {"sasl.username": "me"}


@pytest.mark.slow
def test_all_is_written_in_order_per_key(bootstrap: str) -> None:
    topic = f"t{uuid4().hex}"
    writer = Writer(producer(bootstrap))
    for n in range(100):
        writer.write(topic, b"%d" % n, key=b"%d" % (n % 7), headers=[("n", b"%d" % n)])
    writer.flush()
    assert writer.acknowledged == 100
    found = [(message.key(), int(message.value() or b"")) for message in read_to_end(bootstrap, [topic])]
    by_key = {key: [n for k, n in found if k == key] for key, _ in found}
    assert by_key == {b"%d" % k: list(range(k, 100, 7)) for k in range(7)}


@pytest.mark.slow
def test_a_lost_record_is_raised_by_every_later_call() -> None:
    writer = Writer(producer(f"127.0.0.1:{free_port()}", delivery_timeout_ms=300, linger_ms=0))
    writer.write("anything", b"x")
    with pytest.raises(DeliveryError, match=r"anything: .*_MSG_TIMED_OUT"):
        writer.flush()
    with pytest.raises(DeliveryError):
        writer.write("anything", b"y")
    assert writer.acknowledged == 0


def test_a_record_above_the_limit_is_refused_at_once(bootstrap: str) -> None:
    writer = Writer(producer(bootstrap))
    with pytest.raises(DeliveryError, match="too large"):
        writer.write("big", b"x" * (5 << 20))


def test_a_flush_that_takes_too_long_says_how_many_are_missing() -> None:
    writer = Writer(producer(f"127.0.0.1:{free_port()}"), flush_timeout=0.1)
    writer.write("anything", b"x")
    with pytest.raises(DeliveryError, match=r"1 records unacknowledged after 0\.1 s"):
        writer.flush()


@pytest.mark.slow
def test_silence_is_how_long_records_have_waited_for_an_acknowledgement(bootstrap: str) -> None:
    now = [100.0]
    away = Writer(producer(f"127.0.0.1:{free_port()}"), clock=lambda: now[0])
    assert away.silence == 0.0
    away.write("anything", b"x")
    now[0] = 107.0
    assert away.silence == 7.0
    there = Writer(producer(bootstrap), clock=lambda: now[0])
    there.write(f"t{uuid4().hex}", b"x")
    there.flush()
    now[0] = 200.0
    assert there.silence == 0.0


@pytest.mark.kafka
@pytest.mark.parametrize("handled", [True, False])
def test_one_record_too_large_for_its_topic_does_not_take_its_batch_along(kafka: str, handled: bool) -> None:
    topic = f"t{uuid4().hex}"
    ensure_topics(kafka, [TopicSettings(topic, 1, {"max.message.bytes": "50000"})])
    writer = Writer(producer(kafka, linger_ms=500))
    refused: list[int] = []
    for n in range(6):
        value = os.urandom(300_000 if n == 3 else 1000)
        on_refused = (lambda _error, n=n: refused.append(n)) if handled else None
        writer.write(topic, value, key=b"%d" % n, on_refused=on_refused)
    if handled:
        writer.flush()
    else:
        with pytest.raises(DeliveryError, match="MSG_SIZE_TOO_LARGE"):
            writer.flush()
        writer._failure = None
        writer.flush()
    assert refused == ([3] if handled else [])
    assert {message.key() for message in read_to_end(kafka, [topic])} == {b"0", b"1", b"2", b"4", b"5"}


def test_reading_what_does_not_exist_reads_nothing(bootstrap: str) -> None:
    assert list(read_to_end(bootstrap, ["never-made"])) == []


@pytest.mark.kafka
def test_many_topics_are_made_in_several_requests(kafka: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from nightwire.core.kafka import topics as module

    monkeypatch.setattr(module, "TOPICS_A_REQUEST", 2)
    names = [f"t{uuid4().hex}" for _ in range(5)]
    ensure_topics(kafka, [TopicSettings(name, 1, {}) for name in names])
    ensure_topics(kafka, [TopicSettings(name, 1, {}) for name in [*names, f"{names[0]}.more"]])
    assert {*names, f"{names[0]}.more"} <= module.admin(kafka).list_topics(timeout=60).topics.keys()


@pytest.mark.kafka
def test_topics_are_made_once_with_their_settings(kafka: str) -> None:
    wanted = TopicSettings(f"t{uuid4().hex}", 3, {"retention.ms": "12345"})
    ensure_topics(kafka, [wanted])
    ensure_topics(kafka, [wanted])
    assert list(read_to_end(kafka, [wanted.name])) == []
    from nightwire.core.kafka import admin

    assert len(admin(kafka).list_topics(wanted.name, timeout=60).topics[wanted.name].partitions) == 3


class Forgetful:
    """A client that goes by what it remembers of a topic until it is asked to look it up."""

    def __init__(self, code: int) -> None:
        self.code, self.looked_up = code, list[str]()

    def get_watermark_offsets(self, partition: TopicPartition, **_how: Any) -> tuple[int, int]:
        if not self.looked_up:
            raise KafkaException(KafkaError(self.code))
        return 3, 7 + partition.partition

    def list_offsets(self, asked: Iterable[TopicPartition], **_how: Any) -> dict[TopicPartition, Future[int]]:
        found: Future[int] = Future()
        if self.looked_up:
            found.set_result(7)
        else:
            found.set_exception(KafkaException(KafkaError(self.code)))
        return dict.fromkeys(asked, found)

    def list_topics(self, topic: str = "all", **_how: Any) -> None:
        self.looked_up.append(topic)


@pytest.mark.parametrize(
    "code",
    [KafkaError._UNKNOWN_PARTITION, KafkaError.FENCED_LEADER_EPOCH, KafkaError.NOT_LEADER_FOR_PARTITION],
)
def test_a_topic_whose_leader_died_is_looked_up_anew(code: int) -> None:
    """librdkafka was seen to ask for a quarter of an hour by the epoch of a dead leader."""
    client = Forgetful(code)
    assert watermarks(cast(Consumer, client), "visits", 1) == (3, 8)
    assert client.looked_up == ["visits"]


def test_ends_of_partitions_are_asked_for_anew_where_another_leads() -> None:
    """An archive in compose was seen to know no ends for minutes, once leaders had gone back."""
    client = Forgetful(KafkaError.FENCED_LEADER_EPOCH)
    assert list_offsets(cast(AdminClient, client), [("visits", 1)], END) == {("visits", 1): 7}
    assert client.looked_up == ["all"]


@pytest.mark.slow
def test_what_kafka_refuses_within_a_rebalance_is_an_exception(kafka: str) -> None:
    """Else nothing catches it, and who reads is no more."""
    ensure_topics(kafka, [TopicSettings("filter.ann.refused", 1)])
    reader = consumer(kafka, group="refused")
    lost = TopicPartition("filter.ann.nowhere", 7)
    reader.subscribe(
        ["filter.ann.refused"], on_assign=lambda one, _: one.get_watermark_offsets(lost, timeout=1)
    )
    with pytest.raises(KafkaException):
        until(lambda: reader.poll(0.2))
    reader.close()


def test_a_partition_that_there_is_not_is_said_after_a_while(kafka: str) -> None:
    client = consumer(kafka)
    with pytest.raises(KafkaException, match="artition"):
        watermarks(client, "visits", 999, patience=0.5)
    client.close()


@pytest.mark.slow
def test_a_starting_process_repeats_a_request_until_it_is_stopped() -> None:
    requests: list[int] = []
    stop = Stop()

    def away() -> None:
        requests.append(1)
        if len(requests) == 2:
            stop.set()
        raise KafkaException(KafkaError(KafkaError.NOT_CONTROLLER))

    with pytest.raises(KafkaException):
        retry_while_unavailable(away, patience=60.0, stop=stop)
    assert len(requests) == 2


def test_a_broker_that_librdkafka_has_let_go_is_asked_again() -> None:
    """It lets go of those that new metadata does not name, and fails what was on its way there."""
    errors = [KafkaException(KafkaError(KafkaError._DESTROY_BROKER))]

    def ask() -> str:
        if errors:
            raise errors.pop()
        return "answered"

    assert retry_while_unavailable(ask) == "answered"


def test_patience_ends() -> None:
    def away() -> None:
        raise KafkaException(KafkaError(KafkaError._TRANSPORT))

    with pytest.raises(KafkaException):
        retry_while_unavailable(away, patience=0.0)
    with pytest.raises(KafkaException):
        retry_while_unavailable(away, patience=0.0, stop=Stop())


def test_a_refusal_is_raised_at_once() -> None:
    def refused() -> None:
        raise KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))

    with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
        retry_while_unavailable(refused, patience=60.0)
