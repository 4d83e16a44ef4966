"""The scenario `portal`: many who look, beside the stream that they look at."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import httpx

from nightwire.benchmarks import Better, Context, Experiment, Figure, Needs, Outcome, RunError, Scenario, Size
from nightwire.benchmarks.environment.cluster import Cluster, KafkaExperiment
from nightwire.benchmarks.environment.processes import server_process
from nightwire.benchmarks.model.sample import Figures, Kind, Sample
from nightwire.benchmarks.workers.alerts.due_times import percentiles
from nightwire.benchmarks.workers.alerts.plain_stream import PlainStream
from nightwire.benchmarks.workers.client import worker_process
from nightwire.core.stack import free_port

VIEWERS = 200
POOL = 500
"""Distinct alerts."""
WORKER = "nightwire.benchmarks.scenarios.portal.viewers"
SHARES = ("p50", "p95", "p99", "max")
ALONE = "the same without a portal"


class Watched(KafkaExperiment):
    """A stream to a plain consumer, while many look at it, or nobody."""

    name = "watched"

    def prepare(self) -> None:
        """Make the topics and the alerts, and let some through."""
        self._stream = PlainStream(self._context, self._cluster, POOL)
        self._through(min(POOL, self._context.size.alerts))

    def run_once(self, kind: Kind) -> Figures:
        """Send alerts; return percentiles of their delays, and of the answers to who looks. [ms]

        Raises:
            RunError: A viewer was not told of all alerts, or had no answer.
        """
        if kind is Kind.BASELINE:
            return self._through(self._context.size.alerts)
        alerts = self._context.size.alerts
        order = {"viewers": VIEWERS, "expected": alerts}
        with (
            self._portal() as port,
            worker_process(self._context, WORKER, order | {"port": port}, role="viewers") as viewers,
        ):
            viewers.await_ready()
            figures = self._through(alerts)
            found = viewers.findings()
        if found["refused"] or {*found["alerts"]} != {alerts}:
            told = f"{min(found['alerts'])} to {max(found['alerts'])}"
            raise RunError(f"{found['refused']} answers refused; told of {told} of {alerts} alerts")
        seconds = alerts / self._context.size.rate
        return (
            figures | percentiles("answer", found["waits"]) | {"answers_per_s": len(found["waits"]) / seconds}
        )

    def _through(self, alerts: int) -> Figures:
        return percentiles("live", self._stream.delays(n / self._context.size.rate for n in range(alerts)))

    @contextmanager
    def _portal(self) -> Iterator[int]:
        """Yield the port of a portal that has read the last alert."""
        port = free_port()
        words = ["portal", "serve", "--bootstrap", self._cluster.bootstrap, "--port", str(port)]
        with server_process(self._context, "portal", *words, "--last", "1") as child:
            page = f"http://127.0.0.1:{port}/api/alerts?survey=sim"
            child.until(lambda: httpx.get(page).json()["alerts"], timeout=60.0)
            yield port


def figures_of() -> Iterator[Figure]:
    """Yield the figures."""
    for share in SHARES:
        yield Figure(
            f"live_{share}_ms", "ms", f"Due → plain consumer beside {VIEWERS} viewers, {share}",
            baseline=ALONE, headline=share == "p50",
        )  # fmt: skip
        title = f"Answer to one of {VIEWERS} viewers, {share}"
        yield Figure(f"answer_{share}_ms", "ms", title, headline=share == "p95")
    yield Figure("answers_per_s", "1/s", "Pages and stamps beside the live lists", Better.HIGHER)


class PortalScenario(Scenario):
    """Many who look, beside the stream."""

    name = "portal"
    title = "The portal: many who look, beside the stream that they look at"
    measures = (
        f"Alerts of real size to a plain consumer, open loop, while {VIEWERS} viewers look, each from an "
        "address of his own: a live list with stamps, and every five seconds a page with the eight stamps "
        "in sight, over connections that he keeps, none that he has; and without a portal. "
        "Each viewer has to be told of every alert. Viewers run on the "
        "same machine, with the least priority, and take a part of what they disturb the stream by."
    )
    figures: Sequence[Figure] = tuple(figures_of())
    standard: Mapping[str, Size] = {
        "quick": Size(alerts=5_000, pairs=3, rate=250.0, profile="quick"),
        "full": Size(alerts=15_000, pairs=5, rate=250.0, profile="full"),
    }

    def needs(self, size: Size) -> Needs:
        """Return what a run of *size* takes."""
        seconds = 30 + 2 * size.pairs * (size.alerts / size.rate + 10)
        return Needs(disk=10**9 + size.alerts * size.pairs * 200_000, memory=2 * 10**9, seconds=seconds)

    def experiments(self, context: Context) -> Sequence[Experiment]:
        """Return the one experiment."""
        cluster = self.closing(Cluster(context))
        return [Watched(context, cluster)]

    def outcome(self, samples: Sequence[Sample]) -> Outcome:
        """Say nothing beside the figures."""
        return Outcome()
