"""The directory at work on a Kafka: who dies, how soon a question leads to an event, a long log."""

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import psutil

from nightwire.benchmarks.environment.cluster import Cluster
from nightwire.benchmarks.environment.processes import Child, nightwire
from nightwire.benchmarks.model.sample import Figures, Kind
from nightwire.benchmarks.model.scenario import Context, Experiment, RunError
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


class Living(Experiment):
    """A directory that follows a Kafka of its own."""

    at_most: Mapping[Kind, int] = {Kind.BASELINE: 0}

    def __init__(self, context: Context, cluster: Cluster) -> None:
        self._context, self._cluster = context, cluster

    def prepare(self) -> None:
        """Make the topics."""
        ensure_topics(self._cluster.bootstrap, [settings(DIRECTORY), settings(FILTERS)])

    @contextmanager
    def _directory(self, host: str = "127.0.0.1") -> Iterator[tuple[int, psutil.Process]]:
        """Yield port and process of a directory that has read its log; it listens at *host*."""
        port, page = free_port(), free_port()
        words = ["directory", "serve", "--bootstrap", self._cluster.bootstrap, "--port", str(port)]
        words += ["--host", host]
        log = self._context.folder / "directory.log"
        with Child(nightwire(*words, "--metrics-port", str(page)), log) as child:
            self._context.role(child.process.pid, "directory")
            child.await_health(page, timeout=PATIENCE)
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
                until(lambda: answered(port, state) == [{"state": "live"}])
                os.kill(child.pid, signal.SIGKILL)
            finally:
                child.kill()
                child.wait()
            return {"death_s": until(lambda: answered(port, state) == [{"state": "gone"}])}


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


def until(holds: Callable[[], bool]) -> float:
    """Wait until something *holds*; return how long it took. [s]

    Raises:
        RunError: It does not within two minutes.
    """
    began = time.perf_counter()
    while not holds():
        if time.perf_counter() - began > PATIENCE:
            raise RunError("the directory does not say so")
        time.sleep(0.02)
    return time.perf_counter() - began
