"""What keeping costs the stream: delays of live alerts with an archive at work, and without."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

from nightwire.archive.storage import Store
from nightwire.benchmarks import Context, Figures, Kind
from nightwire.benchmarks.environment.cluster import Cluster, KafkaExperiment
from nightwire.benchmarks.environment.processes import server_process
from nightwire.benchmarks.scenarios.archive.stamping import await_archived
from nightwire.benchmarks.workers.alerts.due_times import percentiles
from nightwire.benchmarks.workers.alerts.plain_stream import TOPIC, PlainStream
from nightwire.core.stack import free_port

POOL = 500
"""Distinct alerts."""
VISITS, BURST, GAP = 2, 2.0, 2.0
"""Visits of a run, how long each sends, and the pause behind it. [s]"""
FIRST = 40
"""Alerts that an archive has kept before the visits begin: it has joined its group."""
RATE = "15MB"
"""Most that the schedule with a rate takes in a second: the mean of visits and pauses, and half."""


class Disturbing(KafkaExperiment):
    """Visits of alerts to a plain consumer, while an archive keeps them or not.

    Args:
        context: Says how fast.
        cluster: Kafka.
        schedule: When the archive takes records.
    """

    def __init__(self, context: Context, cluster: Cluster, schedule: str) -> None:
        super().__init__(context, cluster)
        self.name, self._schedule = f"live-{schedule}", schedule

    def prepare(self) -> None:
        """Make the topics and the alerts, and let a visit through."""
        self._stream = PlainStream(self._context, self._cluster, POOL)
        self._through(1)

    def run_once(self, kind: Kind) -> Figures:
        """Send visits; return percentiles of the delays. [ms]"""
        if kind is Kind.BASELINE:
            return self._through(VISITS)
        with self._archive() as store:
            figures = self._through(VISITS)
            await_archived(store, self._stream.ends)
        return figures

    def _through(self, visits: int) -> Figures:
        per_visit = int(BURST * self._context.size.rate)
        delays = self._stream.delays(
            n // per_visit * (BURST + GAP) + n % per_visit / self._context.size.rate
            for n in range(visits * per_visit)
        )
        return percentiles(f"live_{self._schedule}", delays)

    @contextmanager
    def _archive(self) -> Iterator[Store]:
        """Yield the store of an archive that is at work; what came before it need not keep."""
        self._cluster.delete_before({(TOPIC, part): end for part, end in self._stream.ends.items()})
        store = Store(self._context.folder / f"archive-{secrets.token_hex(4)}")
        words = ["archive", "serve", "--bootstrap", self._cluster.bootstrap, "--archive", store.url]
        words += ["--schedule", self._schedule, "--rate", RATE, "--every", "2s", "--batch", "16MB"]
        words += ["--port", str(free_port())]
        with server_process(self._context, "archive", *words):
            self._stream.send([0.0] * FIRST)
            await_archived(store, self._stream.ends)
            yield store
