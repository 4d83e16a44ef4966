"""Dead letters in Kafka: read them, and send them back."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from confluent_kafka import TopicPartition

from nightwire.consumers.admin.dead_letters import STAGE, DeadLetter, letter, receipt, return_headers
from nightwire.consumers.source.source import TopicError, partitions
from nightwire.core import kafka
from nightwire.core.accounting import read_accounts, write_account
from nightwire.core.kafka import Writer
from nightwire.schemas.topics import ACCOUNTS, DEAD_LETTERS, settings

SPOT = (DEAD_LETTERS, 0)
"""They lie in one partition."""


class LetterError(Exception):
    """A letter is not there, or cannot be replayed; the message says why."""


@dataclass(frozen=True)
class Replayed:
    """A letter that went back, and where to: topic, partition, offset."""

    number: int
    to: tuple[str, int, int]


def newest(bootstrap: str, count: int) -> list[DeadLetter]:
    """Return the newest *count* letters, the oldest of them first.

    Raises:
        TopicError: There is no topic `dead-letters`.
        KafkaException: Kafka cannot be reached.
    """
    first, end = _span(bootstrap)
    return list(_read(bootstrap, max(first, end - count), end))


def one(bootstrap: str, number: int) -> DeadLetter:
    """Return the letter of that number.

    Raises:
        LetterError: There is none.
        TopicError: There is no topic `dead-letters`.
        KafkaException: Kafka cannot be reached.
    """
    first, end = _span(bootstrap)
    if first <= number < end:
        for found in _read(bootstrap, number, number + 1):
            return found
    there = f"there are {first} to {end - 1}" if end > first else "there is none"
    raise LetterError(f"no dead letter {number}; {there}")


def replayed_before(bootstrap: str) -> set[int]:
    """Return the numbers of the letters that were replayed, by their accounts."""
    return {account.first for account in read_accounts(bootstrap) if account.stage == STAGE}


def replay(bootstrap: str, letters: Sequence[DeadLetter], *, again: bool) -> Iterator[Replayed]:
    """Send *letters* back to where they came from, one after the other, and yield each that arrived.

    A letter is accounted for after Kafka has acknowledged its copy.  Whoever dies in between leaves a
    copy without an account: replayed once more it comes twice, with equal `ReceivedAlert.origin`.

    Args:
        bootstrap: ``HOST:PORT[,HOST:PORT…]``.
        letters: What to send; all are checked before the first is sent.
        again: Send even what was replayed before.

    Raises:
        LetterError: One came from no topic, or was replayed before.
        TopicError: The topic it came from is gone.
        DeliveryError: Kafka did not take one.
    """
    done = set() if again else replayed_before(bootstrap)
    targets = [_target(found, done) for found in letters]
    if not targets:
        return
    _check_topics(bootstrap, targets)
    kafka.ensure_topics(bootstrap, [settings(ACCOUNTS)])
    writer = Writer(kafka.producer(bootstrap))
    for found, topic in zip(letters, targets, strict=True):
        yield Replayed(found.number, _send(writer, found, topic))


def _send(writer: Writer, found: DeadLetter, topic: str) -> tuple[str, int, int]:
    places: list[tuple[str, int, int]] = []
    writer.write(
        topic,
        found.value,
        key=found.key,
        headers=return_headers(found),
        on_delivered=lambda message: places.append((topic, message.partition() or 0, message.offset() or 0)),
    )
    writer.flush()
    write_account(writer, receipt(found))
    writer.flush()
    return places[0]


def _target(found: DeadLetter, done: set[int]) -> str:
    if found.origin is None:
        raise LetterError(
            f"dead letter {found.number} came from {found.source or 'nowhere'}, which is no topic: "
            "mend it there, and send it anew (`nightwire replay`)"
        )
    if found.number in done:
        raise LetterError(
            f"dead letter {found.number} was replayed before; --again sends another copy, "
            "which readers find by its headers topic, partition and offset"
        )
    return found.origin[0]


def _check_topics(bootstrap: str, topics: Sequence[str]) -> None:
    reader = kafka.consumer(bootstrap)
    try:
        partitions(reader, sorted(set(topics)))
    finally:
        reader.close()


def _span(bootstrap: str) -> tuple[int, int]:
    reader = kafka.consumer(bootstrap)
    try:
        if SPOT not in partitions(reader, [DEAD_LETTERS]):
            raise TopicError(f"the topic {DEAD_LETTERS} has no partition")
        return kafka.watermarks(reader, *SPOT)
    finally:
        reader.close()


def _read(bootstrap: str, start: int, end: int) -> Iterator[DeadLetter]:
    if start >= end:
        return
    reader = kafka.consumer(bootstrap, enable_partition_eof=True)
    try:
        reader.assign([TopicPartition(*SPOT, start)])
        yield from map(letter, kafka.read_until(reader, {SPOT: end}))
    finally:
        reader.close()
