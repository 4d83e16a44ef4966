"""Plays moves: starts senders and consumers as processes, lets them go, and gathers what they say."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from functools import cached_property
from pathlib import Path

from nightwire.benchmarks._cluster import Cluster
from nightwire.benchmarks._scenario import Context
from nightwire.benchmarks._second import ASKER, READER, SENDER, Second, process
from nightwire.benchmarks._sender import Load, Sent
from nightwire.benchmarks.dmtn._move import LATEST, Move, Played, outcome_of

WARM_UP = Move(Load(200))


class Player:
    """Plays moves on one Kafka; `close` ends it.

    Args:
        context: Of the run.
    """

    def __init__(self, context: Context) -> None:
        self._context, self._exits = context, ExitStack()
        self._cluster = Cluster(context)
        self._exits.callback(self._cluster.close)

    @cached_property
    def warm(self) -> str:
        """A topic that nobody measures; asking for it starts Kafka."""
        return self._exits.enter_context(self._cluster.topic("warm", partitions=1))

    def warm_up(self) -> None:
        """Start Kafka and move something, unless that was done: Java compiles while it runs."""
        if "warm" not in vars(self):
            self.play(WARM_UP)

    def play(self, move: Move) -> Played:
        """Move one visit through a new topic, which is deleted afterwards.

        The clock runs from the first dictionary to the last decode; before, every process is in place.

        Raises:
            RunError: An alert was lost or doubled.
            ChildError: A process failed.
        """
        warm = self.warm
        with self._cluster.topic("dmtn028", partitions=move.partitions) as topic:
            with self._processes(move, topic, warm) as (senders, consumers):
                for one in (*senders, *consumers):
                    one.await_ready()
                for sender in senders:
                    sender.go()
                sent = [Sent(**sender.findings()) for sender in senders]
                found = [consumer.findings() for consumer in consumers]
            return outcome_of(
                move, sent, found, stored=self._cluster.stored(topic), memory=self._cluster.memory()
            )

    def close(self) -> None:
        """Delete the topics and end Kafka, where it was started here."""
        self._exits.close()

    @contextmanager
    def _processes(self, move: Move, topic: str, warm: str) -> Iterator[tuple[list[Second], list[Second]]]:
        """Start all processes of *move* at once; they may not be in place yet."""
        where = {"bootstrap": self._cluster.bootstrap}
        reading = where | {"topics": [topic], "expect": move.load.alerts}
        sending = where | {"topic": topic, "warm": warm}
        with ExitStack() as exits:
            senders = [
                exits.enter_context(
                    process(
                        self._context, SENDER, sending | {"load": asdict(load)}, self._log, role="producer"
                    )
                )
                for load in move.loads
            ]
            consumers = [
                exits.enter_context(
                    process(
                        self._context,
                        ASKER if work == LATEST else READER,
                        reading | {"work": work},
                        self._log,
                        role="asker" if work == LATEST else "consumer",
                    )
                )
                for work in move.consumers
            ]
            yield senders, consumers

    @property
    def _log(self) -> Path:
        return self._context.folder / "processes.log"
