"""The directory's log in Kafka: read into a `View`, and written by add and remove.

The only file of this room that talks to Kafka.
"""

import json

from confluent_kafka import KafkaError, Message

from nightwire.core.kafka import DeliveryError, admin, producer, read_to_end
from nightwire.core.presence import MAX_CAPABILITIES, EntryError, check_entry, entry_key
from nightwire.directory.view import View
from nightwire.schemas import DecodeError, records
from nightwire.schemas.topics import DIRECTORY, FILTERS, filter_topic

MAX_RECORD = MAX_CAPABILITIES + (8 << 10)
"""Longest record that is looked at. [byte]"""
TIMEOUT = 10.0
"""Longest wait for Kafka's answer. [s]"""


def apply(view: View, message: Message) -> None:
    """Note *message*; one that cannot be read is counted in ``view.refused``."""
    key = (message.key() or b"").decode(errors="replace")
    value = message.value()
    try:
        if message.topic() == FILTERS:
            _apply_filter(view, key, value)
        elif not value:
            view.remove(key)
        else:
            _apply_entry(view, key, value, message.timestamp()[1])
    except (DecodeError, EntryError, ValueError):
        view.refused += 1


def _apply_entry(view: View, key: str, value: bytes, appended: int) -> None:
    found = records.ENTRY.decode(value) if len(value) <= MAX_RECORD else None
    if found is None or entry_key(found) != key:
        raise ValueError("too long, or under the key of another")
    check_entry(found)
    view.put(key, {**found, "endpoints": json.dumps(found["endpoints"])}, appended)


def _apply_filter(view: View, key: str, value: bytes | None) -> None:
    owner, _, name = key.partition("/")
    if not name or "/" in name:  # a version, of which the record of the filter tells
        return
    found = records.FILTER.decode(value) if value else None
    topic = (found and found["output"]) or filter_topic(owner, name)
    view.put_filter(owner, name, found if found and found["version"] else None, topic)


def load(bootstrap: str, view: View) -> None:
    """Read the log to its present end into *view*.

    Raises:
        KafkaException: Kafka cannot be reached, or refuses.
    """
    view.begin()
    topics = admin(bootstrap).list_topics(timeout=TIMEOUT).topics
    view.set_topics((name, len(one.partitions)) for name, one in topics.items())
    for message in read_to_end(bootstrap, [one for one in (DIRECTORY, FILTERS) if one in topics]):
        apply(view, message)
    view.commit()


def write(bootstrap: str, key: str, value: bytes | None) -> None:
    """Write the entry of *key*; None takes it out.

    Raises:
        DeliveryError: Kafka did not take it.
    """
    errors: list[str] = []

    def delivered(error: KafkaError | None, _message: object) -> None:
        if error is not None:
            errors.append(error.str())

    client = producer(bootstrap, delivery_timeout_ms=int(TIMEOUT * 1000))
    client.produce(DIRECTORY, value, key, partition=0, on_delivery=delivered)
    if client.flush(TIMEOUT + 1) or errors:
        raise DeliveryError(f"{DIRECTORY}: {errors[0] if errors else 'no answer'}")
