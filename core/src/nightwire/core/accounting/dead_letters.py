"""Dead letters: unreadable records go to a topic, with their source, the reason and the time."""

from typing import cast

from confluent_kafka import Message

from nightwire.core.kafka import MAX_MESSAGE, Headers, Writer
from nightwire.core.runtime import now_ms
from nightwire.schemas.topics import DEAD_LETTERS

MAX_REASON = 1000
"""Longest reason kept. [character]"""

OVERHEAD = 8 << 10
"""Room in a record for our headers, the reason's above all. [byte]"""

MAX_BESIDES = 1 << 20
"""Longest key and headers that are kept whole. [byte]"""

ORIGINAL = "original."
"""Begins the names of headers that the record itself had."""


def send_message_to_dead_letters(
    writer: Writer, message: Message, *, stage: str, reason: str, cluster: str = ""
) -> None:
    """Queue the record *message* to `dead-letters`, with its position, key and headers.

    *cluster* names another Kafka than ours that it came from.
    """
    place = f"{cluster and cluster + '/'}{message.topic()}[{message.partition()}]@{message.offset()}"
    theirs = cast("Headers", message.headers() or ())
    value, key = message.value() or b"", message.key()
    send_to_dead_letters(writer, value, stage=stage, source=place, reason=reason, key=key, headers=theirs)


def send_to_dead_letters(
    writer: Writer,
    value: bytes,
    *,
    stage: str,
    source: str,
    reason: str,
    key: bytes | None = None,
    headers: Headers = (),
) -> None:
    """Queue *value* to `dead-letters`; the caller flushes and counts.

    What makes a record too large is left out: the end of *value*, and headers above 1 MiB.

    Args:
        writer: Where to.
        value: The offending bytes, as they came.
        stage: Which stage could not use them.
        source: Where they came from: a file, or ``topic[partition]@offset``.
        reason: Why, in plain words.
        key: The record's key, where it had one.
        headers: The record's headers, so that it can be replayed as it was.
    """
    ours = [
        ("stage", stage.encode()),
        ("source", source.encode()),
        ("reason", reason[:MAX_REASON].encode("utf-8", "replace")),
        ("time", str(now_ms()).encode()),
    ]
    theirs = [(ORIGINAL + name, content) for name, content in headers]
    besides = len(key or b"") + sum(len(name) + len(content or b"") + 8 for name, content in theirs)
    if besides > MAX_BESIDES:
        key, theirs, besides = (key or b"")[:MAX_REASON], [], MAX_REASON
    writer.write(DEAD_LETTERS, value[: MAX_MESSAGE - OVERHEAD - besides], key=key, headers=[*ours, *theirs])
