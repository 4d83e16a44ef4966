"""Dead letters in Kafka: read, and sent back to the topics that they came from."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from itertools import islice

from confluent_kafka import KafkaException
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
from nightwire.core.kafka import DeliveryError, Writer, error_code, error_text
from nightwire.schemas import MendableError
from nightwire.schemas.topics import ACCOUNTS, DEAD_LETTERS, settings

PARTITION = (DEAD_LETTERS, 0)
"""The one partition of the topic."""
MOST_ALIKE, NEAR = 1000, 10_000
"""Most letters of one reason that go back at once, and how far before and after it they may lie."""

CLOCKS_DIFFER = timedelta(hours=1)
"""Farthest that clocks of those who write letters and of those who replay them are apart."""


class DeadLetterError(MendableError):
    """A dead letter is not there, or cannot be replayed; the message says why."""


@dataclass(frozen=True)
class Replayed:
    """A dead letter that went back, and where to: topic, partition, offset."""

    number: int
    to: tuple[str, int, int]

    def __str__(self) -> str:
        return "{} -> {}[{}]@{}".format(self.number, *self.to)


@dataclass(frozen=True)
class SentBack:
    """What came of letters that were to go back.

    Attributes:
        replayed: Those that went.
        refused: Why others did not; each names its letter.
    """

    replayed: list[Replayed] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


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

    def replayed(self, since: datetime | None) -> set[int]:
        """Return the numbers of the letters from *since* on that were replayed; None: of none.

        By their accounts, which are younger than the letters, but for how far clocks differ.
        """
        accounts = [] if since is None else read_accounts(self._bootstrap, since - CLOCKS_DIFFER)
        return {account.first for account in accounts if account.stage == STAGE}

    def replay(self, letters: Sequence[DeadLetter], *, again: bool) -> Iterator[Replayed]:
        """Send *letters* back to where they came from, in order; yield each that arrived.

        A letter is accounted for after Kafka has acknowledged its copy.  A process that dies in
        between leaves a copy without an account: replayed once more, the record comes twice, with
        equal `ReceivedAlert.origin`; so it does where two processes replay it at the same moment.

        Args:
            letters: What to send; all are checked before the first is sent.
            again: Send even what was replayed before.

        Raises:
            DeadLetterError: One came from no topic, or was replayed before.
            TopicError: The topic it came from is gone.
            DeliveryError: Kafka did not take one.
        """
        replayed = self.replayed(None if again else oldest(letters))
        topics = [_target_topic(letter, replayed) for letter in letters]
        if not topics:
            return
        self._check_topics(topics)
        kafka.ensure_topics(self._bootstrap, [settings(ACCOUNTS)])
        writer = Writer(kafka.producer(self._bootstrap))
        for letter, topic in zip(letters, topics, strict=True):
            yield Replayed(letter.number, _send(writer, letter, topic))

    def send_back(self, number: int, *, alike: bool = False) -> SentBack:
        """Replay that letter; *alike*: those of its reason that were not replayed, too.

        They are the oldest `MOST_ALIKE` among the `NEAR` letters before it and as many after it.

        One that cannot go back keeps no other from it.

        Raises:
            DeadLetterError: There is none of that number.
            TopicError: There is no topic `dead-letters`.
            KafkaException: Kafka cannot be reached, or refuses to read.
        """
        letter, done = self.get(number), SentBack()
        replayed = self.replayed(self._from(letter) if alike else letter.time)
        wanted = self._alike(letter, replayed) if alike else [letter]
        going = list(self._checked(wanted, replayed, done.refused))
        if not going:
            return done
        kafka.ensure_topics(self._bootstrap, [settings(ACCOUNTS)])
        writer = Writer(kafka.producer(self._bootstrap))
        for one, topic in going:
            try:
                done.replayed.append(Replayed(one.number, _send(writer, one, topic)))
            except DeliveryError as error:
                done.refused.append(f"dead letter {one.number}: {error}; nothing was sent after it")
                break
        return done

    def _checked(
        self, letters: Sequence[DeadLetter], replayed: set[int], refused: list[str]
    ) -> Iterator[tuple[DeadLetter, str]]:
        """Yield those that can go back, and where to; why the others cannot goes to *refused*."""
        check = cache(lambda topic: self._check_topics([topic]))
        for one in letters:
            try:
                topic = _target_topic(one, replayed)
                check(topic)
                yield one, topic
            except DeadLetterError as error:
                refused.append(str(error))
            except TopicError as error:
                refused.append(f"dead letter {one.number}: {error}")
            except KafkaException as error:
                if error_code(error) not in kafka.REFUSALS:
                    raise
                refused.append(f"dead letter {one.number}: {error_text(error)}")

    def _from(self, letter: DeadLetter) -> datetime:
        """Return when the first was written of those that `_alike` reads."""
        start = max(self._held()[0], letter.number - NEAR)
        return min(one.time for one in (letter, *islice(self._read(start, letter.number), 1)))

    def _alike(self, letter: DeadLetter, replayed: set[int]) -> list[DeadLetter]:
        """Return those near *letter*, of its reason, that were not replayed, oldest first."""
        first, end = self._held()
        near = self._read(max(first, letter.number - NEAR), min(end, letter.number + NEAR + 1))
        found = (one for one in near if one.reason == letter.reason)
        return list(islice((one for one in found if one.number not in replayed), MOST_ALIKE))

    def _check_topics(self, topics: Sequence[str]) -> None:
        with kafka.consumer(self._bootstrap) as reader:
            partitions_of(reader, sorted(set(topics)))

    def _held(self) -> tuple[int, int]:
        with kafka.consumer(self._bootstrap) as reader:
            if PARTITION not in partitions_of(reader, [DEAD_LETTERS]):
                raise TopicError(f"the topic {DEAD_LETTERS} has no partition")
            return kafka.watermarks(reader, *PARTITION)

    def _read(self, start: int, end: int) -> Iterator[DeadLetter]:
        if start >= end:
            return
        with kafka.consumer(self._bootstrap, enable_partition_eof=True) as reader:
            reader.assign([TopicPartitionOffset(*PARTITION, start)])
            yield from map(parse_dead_letter, kafka.read_until(reader, {PARTITION: end}))


def oldest(letters: Sequence[DeadLetter]) -> datetime | None:
    """Return when the oldest of *letters* was written; None for none."""
    return min((one.time for one in letters), default=None)


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
