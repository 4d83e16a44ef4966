"""What a worker says of flows that do not run as they should, in the topic `flow-problems`."""

import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime

from confluent_kafka import KafkaException

from nightwire.core.kafka import producer
from nightwire.core.subscriptions import SAID_AGAIN, FlowProblem
from nightwire.schemas.topics import FLOW_PROBLEMS

log = logging.getLogger("nightwire.flows")

Place = tuple[str, str]
"""A flow, and a stone of it."""
TELL = 1.0
"""Time between two looks at what there is to say. [s]"""
LINGER = 5.0
"""After so long without it a problem is over: one that comes and goes is one. [s]"""
MOST_SAID = 2000
"""Longest reason that is said. [character]"""


class Teller:
    """Says what does not run here, and takes it back once it does.

    Args:
        bootstrap: Kafka's address.
        worker: Our name.
        clock: Of the process. [s]
    """

    def __init__(self, bootstrap: str, worker: str, clock: Callable[[], float] = time.monotonic) -> None:
        # what is said late is worth nothing, and who may not say it is to hear nothing of it
        self._client = producer(bootstrap, enable_idempotence=False, delivery_timeout_ms=5000)
        self._worker, self._clock = worker, clock
        self._said, self._seen = dict[Place, FlowProblem](), dict[Place, float]()
        self._looked = self._repeated = clock()

    def tell(self, found: Mapping[Place, tuple[int, str]]) -> None:
        """Say what has changed in what is *found*: the flow's version, and why."""
        now = self._clock()
        if now - self._looked < TELL:
            return
        self._looked = now
        if now - self._repeated > SAID_AGAIN:
            self._repeated = now
            for one in self._said.values():
                self._write(one, one)
        for place, (version, why) in found.items():
            self._seen[place] = now
            self._note(place, version, why[:MOST_SAID])
        for place in [place for place, at in self._seen.items() if now - at > LINGER]:
            self._take_back(place)
        self._client.poll(0)

    def close(self) -> None:
        """Take all back."""
        for place in [*self._seen]:
            self._take_back(place)
        self._client.flush(1.0)

    def _note(self, place: Place, version: int, why: str) -> None:
        before = self._said.get(place)
        if before is None or before.version != version:
            since = datetime.now(UTC).isoformat(timespec="seconds")
            made = FlowProblem(place[0], self._worker, place[1], version, since, why)
        else:
            made = replace(before, why=why)
        if made != before:
            self._said[place] = made
            self._write(made, made)

    def _take_back(self, place: Place) -> None:
        del self._seen[place]
        self._write(self._said.pop(place), None)

    def _write(self, one: FlowProblem, value: FlowProblem | None) -> None:
        key = f"{one.flow}/{one.worker}/{one.stone}"
        said = None if value is None else json.dumps(asdict(value))
        try:
            self._client.produce(FLOW_PROBLEMS, said, key, partition=0)
        except (BufferError, KafkaException) as error:
            log.debug("not said of flow %s: %s", one.flow, error)
