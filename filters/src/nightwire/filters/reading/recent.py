"""The newest alerts of a survey, or of derived topics, as they lie in Kafka."""

from collections.abc import Iterator, Mapping, Sequence

from confluent_kafka import Consumer, Message

from nightwire.core.kafka import TopicPartition, check_rights, watermarks
from nightwire.filters.model.offsets import OffsetRange
from nightwire.filters.reading.derived import survey_of
from nightwire.filters.reading.fetch import fetch, range_consumer
from nightwire.schemas.topics import alerts

Sample = tuple[str, bytes]
"""Survey and record."""


def newest_alerts(
    bootstrap: str, surveys: Sequence[str], most: int, sources: Sequence[str] = ()
) -> list[Sample]:
    """Return the newest alerts of each of *surveys*, at most so many of each topic.

    Args:
        bootstrap: Kafka's address.
        surveys: Whose alerts are wanted.
        most: How many of each topic.
        sources: Topics in which to look; none for the surveys' own.

    Raises:
        KafkaException: Kafka does not answer, or we may not read one of the topics.
    """
    consumer = range_consumer(bootstrap)
    try:
        known = consumer.list_topics(timeout=10).topics
        topics = [*(sources or map(alerts, surveys))]
        check_rights(consumer, (topic for topic in topics if topic not in known))
        return [
            (name, message.value() or b"")
            for topic in topics
            if topic in known
            for message in _newest(consumer, topic, len(known[topic].partitions), most)
            if (name := survey_of(message)) in surveys
        ]
    finally:
        consumer.close()


def share_evenly(there: Mapping[TopicPartition, int], wanted: int) -> dict[TopicPartition, int]:
    """Return how many records to take of each partition, as evenly as *there* allows.  Pure."""
    taken = dict.fromkeys(there, 0)
    left = wanted
    for at, partition in enumerate(sorted(there, key=lambda partition: there[partition])):
        taken[partition] = min(there[partition], -(-left // (len(there) - at)))
        left -= taken[partition]
    return taken


def _newest(consumer: Consumer, topic: str, partitions: int, most: int) -> Iterator[Message]:
    bounds = {(topic, part): watermarks(consumer, topic, part) for part in range(partitions)}
    taken = share_evenly({partition: end - first for partition, (first, end) in bounds.items()}, most)
    for partition, count in taken.items():
        end = bounds[partition][1]
        for messages in (
            fetch(consumer, OffsetRange(*partition, end - count, end), patience=10.0) if count else ()
        ):
            yield from messages
