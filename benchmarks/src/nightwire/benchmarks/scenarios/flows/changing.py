"""A graph that changes under load: how long until a change is in effect, and what it loses."""

import secrets
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import numpy as np
from confluent_kafka import OFFSET_BEGINNING, Message, TopicPartition

from nightwire.benchmarks import Context, Experiment, Figures, Kind, RunError
from nightwire.benchmarks.environment.alert_pool import make_pool, ready_messages
from nightwire.benchmarks.environment.cluster import Cluster
from nightwire.benchmarks.environment.processes import child_process, nightwire
from nightwire.benchmarks.workers.alerts.feed import RawProducer, cycled
from nightwire.core.kafka import consumer, ensure_topics, headers_of
from nightwire.core.subscriptions import write_flow
from nightwire.schemas.topics import ACCOUNTS, DEAD_LETTERS, DIRECTORY, FLOWS, settings

CHANGES = {"quick": 20, "full": 100}
RESTARTS = 3
"""Changes of a run by another worker in place of the one at work."""
POOL = 500
"""Distinct alerts."""
PATIENCE = 60.0
"""Longest wait for a change, and for the last alert. [s]"""
WORKERS = ("a", "b")


class Load(threading.Thread):
    """Writes alerts, so many a second, until it is stopped.

    Args:
        sender: Writes.
        rate: Alerts a second.
    """

    def __init__(self, sender: RawProducer, rate: float) -> None:
        super().__init__(daemon=True)
        self._sender, self._rate, self.sent = sender, rate, 0
        self._ready, self._ended = ready_messages(make_pool(POOL)), threading.Event()

    def run(self) -> None:
        """Write."""
        begin = time.monotonic()
        while not self._ended.wait(0.02):
            due = int((time.monotonic() - begin) * self._rate) - self.sent
            self._sender.send_all(cycled(self._ready, due, self.sent))
            self.sent += due
        self._sender.flush()

    def end(self) -> int:
        """Stop; return how many alerts were written."""
        self._ended.set()
        self.join(PATIENCE)
        return self.sent


class Arrivals:
    """What comes out of a flow: how often each alert, and in which version of the flow.

    Args:
        bootstrap: Kafka's address.
        topic: Where the flow writes, one partition.
    """

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._reader = consumer(bootstrap)
        self._reader.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        self.counts: Counter[tuple[bytes, bytes]] = Counter()
        self.version = -1

    def read(self) -> None:
        """Note what has come."""
        for one in self._reader.consume(2000, 0.01):
            if one.error() is None:
                self._note(one)

    def _note(self, message: Message) -> None:
        headers = headers_of(message)
        self.counts[headers["partition"], headers["offset"]] += 1
        self.version = max(self.version, int(headers["flow-version"]))

    def await_version(self, version: int) -> float:
        """Return when something came of *version*, or of a later one. [s, monotonic]"""
        deadline = time.monotonic() + PATIENCE
        while self.version < version:
            if time.monotonic() > deadline:
                raise RunError(f"a change was not in effect within {PATIENCE:g} s")
            self.read()
        return time.monotonic()

    def await_count(self, wanted: int) -> None:
        """Wait for so many alerts; what has not come then is lost."""
        deadline = time.monotonic() + PATIENCE
        while len(self.counts) < wanted and time.monotonic() < deadline:
            self.read()

    def close(self) -> None:
        """Read no more."""
        self._reader.close()


class Changing(Experiment):
    """Conditions change, or stones move between two workers, while alerts go through.

    Args:
        context: Says how fast and how often.
        cluster: Kafka.
        moves: Whether stones move.
    """

    def __init__(self, context: Context, cluster: Cluster, *, moves: bool) -> None:
        self.name = "moves" if moves else "changes"
        self._context, self._cluster, self._moves = context, cluster, moves

    def prepare(self) -> None:
        """Let a flow change once: Kafka has begun with groups and transactions then."""
        with self._at_work() as (flow, _, arrivals, _):
            arrivals.await_version(write_flow(self._cluster.bootstrap, flow[0], self._text(*flow, 1)))

    def run_once(self, kind: Kind) -> Figures:
        """Return times to effect [s], and how many alerts were lost and doubled."""
        changes = CHANGES[self._context.size.profile] if kind is Kind.SUBJECT else RESTARTS
        with self._at_work() as (flow, load, arrivals, workers):
            times = []
            for number in range(1, changes + 1):
                begin = time.monotonic()
                if kind is Kind.BASELINE:
                    workers.pop_all().close()
                version = write_flow(self._cluster.bootstrap, flow[0], self._text(*flow, number))
                if kind is Kind.BASELINE:
                    self._start(workers)
                times.append(arrivals.await_version(version) - begin)
            sent = load.end()
            arrivals.await_count(sent)
        return self._figures(times, sent, arrivals.counts)

    def _figures(self, times: list[float], sent: int, counts: Counter[tuple[bytes, bytes]]) -> Figures:
        shares = (("p50", 50), ("p95", 95), ("max", 100))
        found = {f"{self.name}_{share}_s": float(np.percentile(times, at)) for share, at in shares}
        found[f"{self.name}_lost"] = float(sent - len(counts))
        found[f"{self.name}_doubled"] = float(counts.total() - len(counts))
        return found

    @contextmanager
    def _at_work(self) -> Iterator[tuple[tuple[str, str, str], Load, Arrivals, ExitStack]]:
        """Yield a flow's name and topics, what writes, what arrives, and the workers."""
        kafka, name = self._cluster.bootstrap, f"b{secrets.token_hex(4)}"
        ensure_topics(kafka, [settings(one) for one in (FLOWS, ACCOUNTS, DEAD_LETTERS, DIRECTORY)])
        with (
            self._cluster.topic("in") as given,
            self._cluster.topic("out", partitions=1) as made,
            ExitStack() as workers,
        ):
            self._start(workers)
            version = write_flow(kafka, name, self._text(name, given, made, 0))
            load, arrivals = Load(RawProducer(kafka, given), self._context.size.rate), Arrivals(kafka, made)
            load.start()
            arrivals.await_version(version)
            try:
                yield (name, given, made), load, arrivals, workers
            finally:
                load.end()
                arrivals.close()
                write_flow(kafka, name, None)

    def _start(self, workers: ExitStack) -> None:
        for name in WORKERS if self._moves else WORKERS[:1]:
            words = ["flow", "serve", "--name", name, "--bootstrap", self._cluster.bootstrap]
            role = f"worker {name}"
            workers.enter_context(child_process(self._context, nightwire(*words), role, log=name))

    def _text(self, name: str, given: str, made: str, number: int) -> str:
        """Return the flow as its change of a *number* leaves it."""
        place = f'at = "{WORKERS[number % 2]}"\n' if self._moves else ""
        source = f'[sources.sky]\ntopic = "{given}"\nsurvey = "sim"\nbegin = "start"\n'
        stone = f'[stones.few]\nkind = "filter"\nfrom = "sky"\nwhere = "snr > -{1000 + number}"\n{place}'
        out = f'[stones.out]\nkind = "topic"\nfrom = "few"\ntopic = "{made}"\n'
        at = 'at = "a"\n' if self._moves else ""
        return f'name = "{name}"\n{source}{at}{stone}{out}'
