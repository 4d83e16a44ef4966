"""Records of the mirrored topics as rows; writing them."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import KafkaError, Message

from nightwire.core.kafka import DeliveryError, producer
from nightwire.core.presence import MAX_CAPABILITIES, check_entry, entry_key
from nightwire.core.subscriptions import interest_of
from nightwire.directory.model import SiteRows
from nightwire.schemas import MendableError, records
from nightwire.schemas.topics import DIRECTORY, FILTERS, SUBSCRIPTIONS, filter_topic

MAX_RECORD = MAX_CAPABILITIES + (8 << 10)
"""Longest record that is decoded. [byte]"""
TIMEOUT = 10.0
"""Longest wait for Kafka's answer. [s]"""
MALFORMED = (MendableError, ValueError, KeyError, TypeError, RecursionError)
"""What a malformed record raises; `SchemaError` and `EntryError` are among them."""


def apply(rows: SiteRows, message: Message) -> None:
    """Write *message* to *rows*; a malformed one is counted in ``rows.refused``."""
    key = (message.key() or b"").decode(errors="replace")
    try:
        MIRRORED_TOPICS[str(message.topic())](rows, key, message.value(), message.timestamp()[1])
    except MALFORMED:
        rows.refused += 1


def entry_of(key: str, value: bytes) -> dict[str, Any]:
    """Return the entry that *value* holds under *key*.

    Raises:
        MALFORMED: It is no entry, too long, or belongs under another key.
    """
    found = records.ENTRY.decode(value) if len(value) <= MAX_RECORD else None
    if found is None or entry_key(found) != key:
        raise ValueError("too long, or under the key of another")
    check_entry(found)
    return found


def _apply_entry(rows: SiteRows, key: str, value: bytes | None, appended: int) -> None:
    if not value:
        site, kind, name = key.split("/")
        if site != rows.site:
            raise ValueError("of another site")
        rows.delete_entry(kind, name)
        return
    found = entry_of(key, value)
    if found["site"] != rows.site:
        raise ValueError("of another site")
    rows.put_entry({**found, "endpoints": json.dumps(found["endpoints"])}, appended)


def _apply_filter(rows: SiteRows, key: str, value: bytes | None, _appended: int) -> None:
    owner, _, name = key.partition("/")
    if not name or "/" in name:  # a version, of which the record of the filter tells
        return
    found = records.FILTER.decode(value) if value else None
    topic = (found and found["output"]) or filter_topic(owner, name)
    rows.put_filter(owner, name, found if found and found["version"] else None, topic)


def _apply_interest(rows: SiteRows, key: str, value: bytes | None, appended: int) -> None:
    site, subscriber, name = key.split("/")
    if site != rows.site:
        raise ValueError("of another site")
    if value is None:
        rows.delete_interest(subscriber, name)
    else:
        rows.put_interest(interest_of(key, value), appended)


MIRRORED_TOPICS: dict[str, Callable[[SiteRows, str, bytes | None, int], None]] = {
    DIRECTORY: _apply_entry,
    FILTERS: _apply_filter,
    SUBSCRIPTIONS: _apply_interest,
}
"""The mirrored topics, and what writes a record of each to the rows."""


def write(bootstrap: str, entries: Mapping[str, bytes | None], topic: str = DIRECTORY) -> None:
    """Write *entries* to a log by their keys; None is a tombstone.

    Raises:
        DeliveryError: Kafka did not take one of them.
    """
    if not entries:
        return
    errors: list[str] = []

    def delivered(error: KafkaError | None, _message: object) -> None:
        if error is not None:
            errors.append(error.str())

    client = producer(bootstrap, delivery_timeout_ms=int(TIMEOUT * 1000))
    for key, value in entries.items():
        client.produce(topic, value, key, partition=0, on_delivery=delivered)
    if client.flush(TIMEOUT + 1) or errors:
        raise DeliveryError(f"{topic}: {errors[0] if errors else 'no answer'}")
