"""What is measured: sizes, and numbers of producers and consumers.  Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from nightwire.benchmarks.model.scenario import Size
from nightwire.core.kafka import MAX_MESSAGE
from nightwire.producer.writing import OVERHEAD

KIB, MIB = 1 << 10, 1 << 20
LARGEST = MAX_MESSAGE - OVERHEAD
"""The paper's 4 Mbytes, less what key and headers may take: Kafka takes no larger alert. [byte]"""
PINGPONG = (256, 512, 2 * KIB, 4 * KIB, 8 * KIB, 16 * KIB, 128 * KIB, MIB, LARGEST)
FLOW = (256, 2 * KIB, 16 * KIB, 128 * KIB, MIB)
"""The sizes that the paper's text names; those of its plots have no numbers. [byte]"""
MOST = 14
"""Producers or consumers, at most: so many saturated the paper's network."""
NAMES = {LARGEST: "4_mib"} | {size: f"{size // KIB}_kib" for size in PINGPONG if KIB <= size < MIB}


@dataclass(frozen=True)
class Point:
    """So many producers, and so many consumers each of which reads everything."""

    producers: int = 1
    consumers: int = 1

    @property
    def label(self) -> str:
        """What it is called in the names of figures."""
        if self.producers > 1:
            return f"{self.producers}_producers"
        return f"{self.consumers}_consumers" if self.consumers > 1 else "one_to_one"

    @property
    def title(self) -> str:
        """What it is called in their titles."""
        one, other = ("s" if count > 1 else "" for count in (self.producers, self.consumers))
        return f"{self.producers} producer{one}, {self.consumers} consumer{other}"

    def number_of(self, what: str) -> int:
        """Return how many ``producers`` or ``consumers`` it has; 0 where the others are many."""
        count, others = self.producers, self.consumers
        if what == "consumers":
            count, others = others, count
        return count if others == 1 else 0


@dataclass(frozen=True)
class Plan:
    """What a run measures.

    Attributes:
        pingpong: Sizes of single messages that go to and fro. [byte]
        flow: Sizes of messages that follow each other. [byte]
        counts: Numbers of producers, and of consumers.
        trips: Round trips of a size, at most.
        seconds: Time for the round trips of a size, at most. [s]
        messages: Messages of a flow, at most.
        volume: All messages of a flow together, at most. [byte]
    """

    pingpong: Sequence[int]
    flow: Sequence[int]
    counts: Sequence[int]
    trips: int
    seconds: float
    messages: int
    volume: int

    @property
    def points(self) -> list[Point]:
        """One to one, then many producers, then many consumers."""
        many = [count for count in self.counts if count > 1]
        return [Point(), *(Point(producers=n) for n in many), *(Point(consumers=n) for n in many)]

    @property
    def most(self) -> int:
        """Processes at work at the same time, at most."""
        return 1 + max(self.counts)

    def count(self, size: int) -> int:
        """Return how many messages of *size* make a flow."""
        return max(1, min(self.messages, self.volume // size))


def plan_of(size: Size) -> Plan:
    """Return what a run of *size* measures."""
    if size.profile == "full":
        counts = tuple(range(1, MOST + 1))
        return Plan(PINGPONG, FLOW, counts, min(1_000, size.alerts), 10.0, size.alerts, 128 * MIB)
    pingpong, flow = (256, 16 * KIB, 128 * KIB, MIB, LARGEST), (256, 16 * KIB, MIB)
    return Plan(pingpong, flow, (1, 4, MOST), min(200, size.alerts), 1.5, size.alerts, 16 * MIB)


def name_of(size: int) -> str:
    """Return what *size* is called in the names of figures."""
    return NAMES.get(size) or (f"{size // MIB}_mib" if size >= MIB else f"{size}_bytes")


def words_of(size: int) -> str:
    """Return what *size* is called in titles."""
    number, unit = name_of(size).split("_")
    return f"{number} {unit.replace('ib', 'iB').replace('k', 'K').replace('m', 'M')}"
