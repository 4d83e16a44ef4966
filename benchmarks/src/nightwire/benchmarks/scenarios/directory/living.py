"""The directory at work on a Kafka: who dies, how soon a question leads to an event, a long log."""

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import psutil

from nightwire.benchmarks import Context, Figures, Kind, RunError
from nightwire.benchmarks.environment.cluster import Cluster, KafkaExperiment
from nightwire.benchmarks.environment.processes import server_process
from nightwire.benchmarks.environment.waiting import until
from nightwire.benchmarks.scenarios.directory.asking import answered
from nightwire.core.kafka import ensure_topics, producer
from nightwire.core.presence import entry, entry_key
from nightwire.core.stack import free_port
from nightwire.schemas.records import ENTRY
from nightwire.schemas.topics import DIRECTORY, FILTERS, settings

PATIENCE = 120.0
"""Longest wait for anything. [s]"""
LIVES = """
import sys, time
from nightwire.core.presence import registered
with registered(*sys.argv[1:]):
    time.sleep(600)
"""
"""A process that does nothing but live."""


class Living(KafkaExperiment):
    """A directory that follows a Kafka of its own."""

    at_most: Mapping[Kind, int] = {Kind.BASELINE: 0}

    def prepare(self) -> None:
        """Make the topics."""
        ensure_topics(self._cluster.bootstrap, [settings(DIRECTORY), settings(FILTERS)])

    @contextmanager
    def _directory(self, host: str = "127.0.0.1") -> Iterator[tuple[int, psutil.Process]]:
        """Yield port and process of a directory that has read its log; it listens at *host*."""
        port, where = free_port(), ["--bootstrap", self._cluster.bootstrap, "--host", host]
        words = ["directory", "serve", *where, "--port", str(port)]
        with server_process(self._context, "directory", *words) as child:
            yield port, psutil.Process(child.process.pid)


class Deaths(Living):
    """A process that is killed with -9: how long until the directory says so."""

    name = "deaths"

    def run_once(self, kind: Kind) -> Figures:
        """Let a process live, and kill it."""
        name = f"victim-{secrets.token_hex(4)}"
        state = f"SELECT state FROM processes WHERE name = '{name}'"  # noqa: S608
        with self._directory() as (port, _):
            child = subprocess.Popen([sys.executable, "-c", LIVES, self._cluster.bootstrap, name])
            try:
                self._await_state(port, state, "live")
                os.kill(child.pid, signal.SIGKILL)
            finally:
                child.kill()
                child.wait()
            return {"death_s": self._await_state(port, state, "gone")}

    def _await_state(self, port: int, question: str, wanted: str) -> float:
        """Return how long it takes until the directory says so. [s]"""
        answer = [{"state": wanted}]
        what = f"the directory does not say {wanted}"
        return until(lambda: answered(port, question) == answer, what, patience=PATIENCE, pause=0.02)


class Rebuild(Living):
    """A directory that begins with a long log."""

    name = "rebuild"

    def __init__(self, context: Context, cluster: Cluster, records: int) -> None:
        super().__init__(context, cluster)
        self._records = records

    def prepare(self) -> None:
        """Write the log, once."""
        super().prepare()
        self._context.say(f"writing a log of {self._records:,} entries")
        client = producer(self._cluster.bootstrap, queue_buffering_max_messages=1_000_000)
        for number in range(self._records):
            found = entry("producer", f"peer-{number}", owner=f"owner-{number % 100}", topic="alerts.lsst")
            client.produce(DIRECTORY, ENTRY.encode(found), entry_key(found), partition=0)
            client.poll(0)
        if client.flush(PATIENCE):
            raise RunError("Kafka did not take the log")

    def run_once(self, kind: Kind) -> Figures:
        """Start it, and wait until it has read all."""
        began = time.perf_counter()
        with self._directory() as (port, process):
            taken = time.perf_counter() - began
            known = answered(port, "SELECT count(*) AS n FROM peers WHERE kind = 'producer'")[0]["n"]
            if known != self._records:
                raise RunError(f"{known} entries are known of {self._records}")
            return {"rebuild_s": taken, "rebuild_mb": process.memory_info().rss / 1e6}
