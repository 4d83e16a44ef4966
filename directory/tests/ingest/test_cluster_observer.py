"""What Kafka itself tells: rates, newest records, who reads."""

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import TopicPartition

from nightwire.core.kafka import consumer, producer, retry_while_unavailable
from nightwire.directory.ingest.cluster_observer import ClusterObserver, TopicRates
from nightwire.directory.model import SiteRows, View


def test_a_rate_is_the_mean_over_a_minute_at_least() -> None:
    rates = TopicRates(window=60.0)
    rates.add(0.0, {("a", 0): 100})
    assert rates.of("a") is None
    for tenth in range(1, 20):
        rates.add(tenth * 10.0, {("a", 0): 100 + tenth * 20, ("a", 1): tenth * 10, ("new", 0): 5})
    assert rates.of("a") == pytest.approx(3.0)
    assert rates.of("new") == 0.0
    assert rates.of("unknown") is None


def test_a_topic_that_was_made_anew_has_no_negative_rate() -> None:
    rates = TopicRates()
    rates.add(0.0, {("a", 0): 100})
    rates.add(10.0, {("a", 0): 3})
    assert rates.of("a") == 0


@pytest.fixture
def view() -> Iterator[View]:
    one = View()
    yield one
    one.close()


@pytest.mark.kafka
def test_topics_their_newest_record_and_who_reads_them(
    kafka: str, fresh_topic: Callable[..., str], view: View
) -> None:
    topic = fresh_topic("alerts", 2)
    rows = SiteRows(view, "local", kafka)
    observer = ClusterObserver(kafka, rows)
    retry_while_unavailable(lambda: observer.observe(0.0))  # the topic is new
    sql = "SELECT partitions, rate, newest, members FROM streams WHERE topic = ?"
    assert view.query(sql, topic).rows == [(2, None, None, 0)]
    client, reader = producer(kafka), consumer(kafka, group="ann.reads")
    for number in range(30):
        client.produce(topic, b"an alert", partition=number % 2, timestamp=1_700_000_000_000 + number)
    assert client.flush(30) == 0
    reader.subscribe([topic])
    while not reader.assignment():
        reader.poll(0.1)
    observer.observe(10.0)
    assert view.query(sql, topic).rows == [(2, 3.0, 1_700_000_000_029, 1)]
    asked = "SELECT name, members, lag FROM consumers WHERE topic = ?"
    assert view.query(asked, topic).rows == [("ann.reads", 1, None)]
    reader.commit(offsets=[TopicPartition(topic, 0, 5), TopicPartition(topic, 1, 15)], asynchronous=False)
    observer.observe(12.0)
    assert view.query(asked, topic).rows == [("ann.reads", 1, 10)]
    reader.close()
    observer.observe(20.0)
    assert view.query(asked, topic).rows == []
