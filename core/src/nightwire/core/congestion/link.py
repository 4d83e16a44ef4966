"""A link to a consumer: what waits for it, what goes out next, what is owed.  Pure.

What is owed of a batch is known before it goes out, so who keeps that first loses nothing.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from types import MappingProxyType
from typing import Any

from confluent_kafka import Message

from nightwire.core.congestion.ladder import Ladder, Level
from nightwire.core.congestion.owed import Owed, Sent
from nightwire.core.congestion.reduction import Handler, with_headers
from nightwire.core.datagrams import LITE_HEADER
from nightwire.core.kafka import TopicPartition

LEVEL_HEADER = "level"
"""Says what goes out of an alert, ``stampless`` or ``lite``; the whole one follows."""
FOLLOWS_HEADER = "follows"
"""Says in the whole alert what went out of it before; ``nothing`` where it was skipped."""
ROUND = 0.1
"""Time that a batch is to take, as a part of the ladder's limit."""
LONGEST = 20.0
"""A batch takes no longer than this: who does not answer within a minute is taken for gone. [s]"""
LONG = 3
"""Where alerts follow, a batch takes so many times as long."""
SAMPLED = 5_000
"""From so many alerts at most a sample is chosen at once."""
ITSELF = 1 << 10
"""Memory that a record takes beside its bytes. [byte]"""
FIRST, LEAST = 64 << 10, 4 << 10
"""Size of a batch at first, and on the slowest link. [byte]"""
REDUCED = 4 << 10
"""Size of a reduced alert, before one was seen. [byte]"""

Place = tuple[TopicPartition, int]
"""A partition and an offset."""


@dataclass(frozen=True)
class Batch:
    """What goes out at once.

    Attributes:
        messages: The records, as they go out.
        since: When the oldest of what does not follow arrived. [s, any steady clock]
        upto: By partition, the offset behind what is decided.
        became: How many go out ``full`` or ``reduced``, are ``skipped``, or ``followed``.
        paid: What is owed no more once it is delivered.
    """

    messages: Sequence[Message]
    since: float | None = None
    upto: Mapping[TopicPartition, int] = field(default_factory=dict)
    became: Mapping[str, int] = field(default_factory=dict)
    paid: Sequence[Place] = ()

    @property
    def size(self) -> int:
        """Its values. [byte]"""
        return sum(map(len, self.messages))


NOTHING = Batch(())


class Link:
    """Decides what goes out next.

    Args:
        ladder: Says how much of each alert.
        handler: Makes less of a batch.
    """

    def __init__(self, ladder: Ladder, handler: Handler) -> None:
        self.ladder, self.owed = ladder, Owed()
        self._handler = handler
        self._waiting: deque[tuple[float, Message]] = deque()
        self._held = 0
        self._budget, self._mean = float(FIRST), dict.fromkeys(Level, float(REDUCED))

    @property
    def held(self) -> int:
        """What waits takes so much memory. [byte]"""
        return self._held

    def arrive(self, messages: Sequence[Message], at: float) -> None:
        """Let *messages* wait, none of which arrived before *at*."""
        self._waiting.extend((at, message) for message in messages)
        self._held += sum(map(memory_of, messages))

    def waits(self, partition: TopicPartition) -> bool:
        """Return whether something of *partition* waits."""
        return any(place_of(one)[0] == partition for _, one in self._waiting)

    def leave(self, partition: TopicPartition) -> None:
        """Let nothing of *partition* wait any more."""
        self._waiting = deque(one for one in self._waiting if place_of(one[1])[0] != partition)
        self._held = sum(memory_of(message) for _, message in self._waiting)

    def choose(self, most: int, size: int, now: float) -> Batch | None:
        """Return what goes out at *now*; None where nothing waits.

        Args:
            most: So many records at most.
            size: About so many bytes at most. [byte]
            now: The time. [s]
        """
        level = self.ladder.see(now - self._waiting[0][0] if self._waiting else 0.0, now)
        if not self._waiting:
            return None
        since, budget = self._waiting[0][0], min(self._budget, size)
        batch = [one for _, one in islice(self._waiting, self._count(level, most, budget))]
        out = batch if level is Level.FULL else self._less(level, batch, most, budget)
        for one in batch:
            self._waiting.popleft()
            self._held -= memory_of(one)
        self._weigh(level, out)
        return self._decided(batch, out, since)

    def wanted(
        self,
        most: int,
        size: int,
        live: Batch = NOTHING,
        least: Mapping[TopicPartition, int] = MappingProxyType({}),
    ) -> Mapping[Place, Sent]:
        """Return what is owed and may go beside *live*: nothing where less is sent, or waits.

        What lies below the offsets *least* of partitions cannot be had just now.
        """
        if self.ladder.level is not Level.FULL or self._waiting:
            return {}
        room = (min(LONG * self._budget, size) - live.size) / self._mean[Level.FULL]
        one = 0 if live.messages else 1
        return self.owed.first(max(one, min(most - len(live.messages), int(room))), least)

    def following(
        self, wanted: Mapping[Place, Sent], whole: Sequence[Message], live: Batch = NOTHING
    ) -> Batch:
        """Return the batch of *whole* alerts, those of *wanted* that were found, and of *live*."""
        self._weigh(Level.FULL, whole)
        said = (wanted[place_of(one)].name.lower().encode() for one in whole)
        out = [with_headers(one, (FOLLOWS_HEADER, text)) for one, text in zip(whole, said, strict=True)]
        became, paid = {**live.became, "followed": len(out)}, [*map(place_of, whole)]
        return replace(live, messages=[*out, *live.messages], became=became, paid=paid)

    def delivered(self, batch: Batch, took: float, now: float) -> None:
        """Note that *batch* was delivered at *now*, *took* after it went out. [s]"""
        for one in batch.paid:
            self.owed.pay(*one)
        round_ = min(LONGEST, ROUND * self.ladder.limit)
        if took >= round_:
            self._budget = max(LEAST, round_ * batch.size / took)
        elif batch.size > self._budget / 2:
            self._budget *= 2
        if batch.since is not None:
            self.ladder.see(now - batch.since, now)

    def _less(self, level: Level, batch: Sequence[Message], most: int, budget: float) -> list[Message]:
        """Return what goes out of *batch*; the handler may fail: then all waits on."""
        less = self._handler(level, batch)
        return [*_within(islice(less, most), budget)] if level is Level.SAMPLE else [*less]

    def _count(self, level: Level, most: int, budget: float) -> int:
        """Return how many of those that wait are looked at."""
        if level is Level.SAMPLE:
            return SAMPLED
        if level is Level.FULL:
            return sum(1 for _ in _within((one for _, one in islice(self._waiting, most)), budget))
        return min(most, max(1, int(budget / self._mean[level])))

    def _weigh(self, level: Level, out: Sequence[Message]) -> None:
        if out:
            self._mean[level] = max(1.0, sum(map(len, out)) / len(out))

    def _decided(self, batch: Sequence[Message], out: Sequence[Message], since: float) -> Batch:
        """Return what is *out* of *batch*, in order; what is missing of it is owed."""
        left = {place_of(one): one for one in out}
        messages: list[Message] = []
        upto: dict[TopicPartition, int] = {}
        became = Counter[str]()
        for message in batch:
            partition, offset = place_of(message)
            upto[partition] = offset + 1
            less = left.get((partition, offset))
            sent = _sent(message, less, self.ladder.level)
            became[{None: "full", Sent.NOTHING: "skipped"}.get(sent, "reduced")] += 1
            if sent is not None:
                self.owed.add(partition, offset, sent)
            if less is not None:
                headers = [(LEVEL_HEADER, sent.name.lower().encode()), (LITE_HEADER, b"1")] if sent else []
                messages.append(with_headers(less, *headers))
        return Batch(messages, since, upto, became)


def _sent(message: Message, less: Message | None, level: Level) -> Sent | None:
    """Return what *less* is of *message*; None where it is all."""
    if less is None:
        return Sent.NOTHING
    if less.value() == message.value():
        return None
    return Sent.STAMPLESS if level is Level.STAMPLESS else Sent.LITE


def _within(messages: Iterable[Message], budget: float) -> Iterator[Message]:
    """Yield the first of *messages*, and more until they have *budget* bytes."""
    for message in messages:
        yield message
        if (budget := budget - len(message)) <= 0:
            return


def memory_of(message: Message) -> int:
    """Return what *message* takes, with key, headers and itself. [byte]"""
    headers: Any = message.headers() or ()
    beside = sum(len(name) + len(one or "") for name, one in headers)
    return ITSELF + len(message) + len(message.key() or "") + beside


def place_of(message: Message) -> Place:
    """Return where *message* lies."""
    return (str(message.topic()), message.partition() or 0), message.offset() or 0
