"""Dead letters in Kafka: read, and sent back to the topics that they came from."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.consumers.admin.dead_letters import (
    STAGE,
    DeadLetter,
    parse_dead_letter,
    replay_account,
    replay_headers,
)
from nightwire.consumers.source import TopicError, partitions_of
from nightwire.core import kafka
from nightwire.core.accounting import read_accounts, write_account
from nightwire.core.kafka import Writer
from nightwire.schemas import MendableError
from nightwire.schemas.topics import ACCOUNTS, DEAD_LETTERS, settings

PARTITION = (DEAD_LETTERS, 0)
"""The one partition of the topic."""


class DeadLetterError(MendableError):
    """A dead letter is not there, or cannot be replayed; the message says why."""


@dataclass(frozen=True)
class Replayed:
    """A dead letter that went back, and where to: topic, partition, offset."""

    number: int
    to: tuple[str, int, int]


class DeadLetterStore:
    """The topic `dead-letters` of one Kafka.

    Args:
        bootstrap: ``HOST:PORT[,HOST:PORT…]``.
    """

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def newest(self, count: int) -> list[DeadLetter]:
        """Return the newest *count* letters, the oldest of them first.

        Raises:
            TopicError: There is no topic `dead-letters`.
            KafkaException: Kafka cannot be reached.
        """
        first, end = self._held()
        return list(self._read(max(first, end - count), end))

    def get(self, number: int) -> DeadLetter:
        """Return the letter of that number.

        Raises:
            DeadLetterError: There is none.
            TopicError: There is no topic `dead-letters`.
            KafkaException: Kafka cannot be reached.
        """
        first, end = self._held()
        if first <= number < end:
            for letter in self._read(number, number + 1):
                return letter
        there = f"there are {first} to {end - 1}" if end > first else "there is none"
        raise DeadLetterError(f"no dead letter {number}; {there}")

    def replayed(self) -> set[int]:
        """Return the numbers of the letters that were replayed, by their accounts."""
        return {account.first for account in read_accounts(self._bootstrap) if account.stage == STAGE}

    def replay(self, letters: Sequence[DeadLetter], *, again: bool) -> Iterator[Replayed]:
        """Send *letters* back to where they came from, in order; yield each that arrived.

        A letter is accounted for after Kafka has acknowledged its copy.  A process that dies in
        between leaves a copy without an account: replayed once more, the record comes twice, with
        equal `ReceivedAlert.origin`.

        Args:
            letters: What to send; all are checked before the first is sent.
            again: Send even what was replayed before.

        Raises:
            DeadLetterError: One came from no topic, or was replayed before.
            TopicError: The topic it came from is gone.
            DeliveryError: Kafka did not take one.
        """
        replayed = set() if again else self.replayed()
        topics = [_target_topic(letter, replayed) for letter in letters]
        if not topics:
            return
        self._check_topics(topics)
        kafka.ensure_topics(self._bootstrap, [settings(ACCOUNTS)])
        writer = Writer(kafka.producer(self._bootstrap))
        for letter, topic in zip(letters, topics, strict=True):
            yield Replayed(letter.number, _send(writer, letter, topic))

    def _check_topics(self, topics: Sequence[str]) -> None:
        reader = kafka.consumer(self._bootstrap)
        try:
            partitions_of(reader, sorted(set(topics)))
        finally:
            reader.close()

    def _held(self) -> tuple[int, int]:
        reader = kafka.consumer(self._bootstrap)
        try:
            if PARTITION not in partitions_of(reader, [DEAD_LETTERS]):
                raise TopicError(f"the topic {DEAD_LETTERS} has no partition")
            return kafka.watermarks(reader, *PARTITION)
        finally:
            reader.close()

    def _read(self, start: int, end: int) -> Iterator[DeadLetter]:
        if start >= end:
            return
        reader = kafka.consumer(self._bootstrap, enable_partition_eof=True)
        try:
            reader.assign([TopicPartitionOffset(*PARTITION, start)])
            yield from map(parse_dead_letter, kafka.read_until(reader, {PARTITION: end}))
        finally:
            reader.close()


def _send(writer: Writer, letter: DeadLetter, topic: str) -> tuple[str, int, int]:
    places: list[tuple[str, int, int]] = []
    writer.write(
        topic,
        letter.value,
        key=letter.key,
        headers=replay_headers(letter),
        on_delivered=lambda message: places.append((topic, message.partition() or 0, message.offset() or 0)),
    )
    writer.flush()
    write_account(writer, replay_account(letter))
    writer.flush()
    return places[0]


def _target_topic(letter: DeadLetter, replayed: set[int]) -> str:
    if letter.origin is None:
        raise DeadLetterError(
            f"dead letter {letter.number} came from {letter.source or 'nowhere'}, which is no topic: "
            "mend it there, and send it anew (`nightwire replay`)"
        )
    if letter.number in replayed:
        raise DeadLetterError(
            f"dead letter {letter.number} was replayed before; --again sends another copy, "
            "which readers find by its headers topic, partition and offset"
        )
    return letter.origin[0]
