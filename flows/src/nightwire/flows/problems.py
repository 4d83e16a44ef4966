"""A worker's problems with its flows, reported in the topic `flow-problems`."""

import json
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime

from confluent_kafka import KafkaException

from nightwire.core.kafka import producer
from nightwire.core.subscriptions import REPEAT_INTERVAL, FlowProblem, reported_problems
from nightwire.schemas.topics import FLOW_PROBLEMS

log = logging.getLogger("nightwire.flows")

ProblemKey = tuple[str, str]
"""A flow's name, and a stone's; an empty one for the flow as a whole."""
INTERVAL = 1.0
"""Time between two reports. [s]"""
LINGER = 5.0
"""Time after which a problem that is found no more is withdrawn: one may flicker. [s]"""
MOST_CHARACTERS = 2000
"""Longest reason. [character]"""


class ProblemReporter:
    """Writes the problems of one worker to Kafka, and tombstones once they are over.

    Args:
        bootstrap: Kafka's address.
        worker: Name of the worker.
        clock: A monotonic clock. [s]
    """

    def __init__(self, bootstrap: str, worker: str, clock: Callable[[], float] = time.monotonic) -> None:
        # a late report is worth nothing, and a worker that may not write it is to log no errors
        self._client = producer(bootstrap, enable_idempotence=False, delivery_timeout_ms=5000)
        self._worker, self._clock = worker, clock
        self._reported = dict[ProblemKey, FlowProblem]()
        with suppress(KafkaException):  # what it said before a crash is withdrawn unless seen again
            before = (one for one in reported_problems(bootstrap) if one.worker == worker)
            self._reported = {(one.flow, one.stone): one for one in before}
        self._last_run = self._last_repeat = clock()
        self._last_seen = dict.fromkeys(self._reported, self._last_run)

    def report(self, found: Mapping[ProblemKey, tuple[int, str]]) -> None:
        """Write the changes in the problems *found*: each a flow's version and a reason."""
        now = self._clock()
        if now - self._last_run < INTERVAL:
            return
        self._last_run = now
        if now - self._last_repeat > REPEAT_INTERVAL:
            self._last_repeat = now
            for key, one in self._reported.items():
                self._write(key, one)
        for key, (version, why) in found.items():
            self._last_seen[key] = now
            self._note(key, version, why[:MOST_CHARACTERS])
        for key in [key for key, seen_at in self._last_seen.items() if now - seen_at > LINGER]:
            self._withdraw(key)
        self._client.poll(0)

    def close(self) -> None:
        """Withdraw all problems."""
        for key in [*self._last_seen]:
            self._withdraw(key)
        self._client.flush(1.0)

    def _note(self, key: ProblemKey, version: int, why: str) -> None:
        before = self._reported.get(key)
        if before is None or before.version != version:
            since = datetime.now(UTC).isoformat(timespec="seconds")
            made = FlowProblem(key[0], self._worker, key[1], version, since, why)
        else:
            made = replace(before, why=why)
        if made != before:
            self._reported[key] = made
            self._write(key, made)

    def _withdraw(self, key: ProblemKey) -> None:
        del self._last_seen[key]
        del self._reported[key]
        self._write(key, None)

    def _write(self, key: ProblemKey, problem: FlowProblem | None) -> None:
        flow, stone = key
        value = None if problem is None else json.dumps(asdict(problem))
        try:
            self._client.produce(FLOW_PROBLEMS, value, f"{flow}/{self._worker}/{stone}", partition=0)
        except (BufferError, KafkaException) as error:
            log.debug("not said of flow %s: %s", flow, error)
