"""How long the filter engine takes over a visit, beside a consumer that only takes the bytes."""

import time

from nightwire.benchmarks.environment.alert_pool import ReadyMessage
from nightwire.benchmarks.environment.filter_engine import ALERTS, FilterEngine
from nightwire.benchmarks.model.scenario import Context, Experiment
from nightwire.benchmarks.model.sample import Figures, Kind
from nightwire.benchmarks.workers.alerts.feed import RawProducer, cycled
from nightwire.benchmarks.workers.client import reader_process

WARM_UP = 500
"""Alerts that the engine judges before the first pair: Java compiles while it runs."""


class Filtering(Experiment):
    """Ready-made bytes → Kafka → every example filter judged, what passed acknowledged, accounts written."""

    name = "filter"

    def __init__(self, context: Context, engine: FilterEngine, ready: list[ReadyMessage]) -> None:
        self._context, self._engine, self._ready = context, engine, ready

    def prepare(self) -> None:
        """Start the engine, submit the example filters, and have it judge some alerts."""
        self._engine.engine()
        for _turn in range(2):
            self._judged(min(WARM_UP, self._context.size.alerts))

    def run_once(self, kind: Kind) -> Figures:
        """Send one visit and wait until the engine has accounted for it, or a consumer has it."""
        count = self._context.size.alerts
        if kind is Kind.SUBJECT:
            seconds, passed = self._judged(count)
            return {
                "filter_pass_seconds": seconds,
                "filter_alerts_per_second": count / seconds,
                "filter_passed": float(passed),
            }
        seconds = self._bare(count)
        return {"filter_pass_seconds": seconds, "filter_alerts_per_second": count / seconds}

    def _judged(self, count: int) -> tuple[float, int]:
        """Return how long a visit took [s], and how many of its alerts passed a filter."""
        messages = cycled(self._ready, count)
        note, ends = self._engine.delivered()
        with self._engine.coverage() as coverage:
            bare = RawProducer(self._engine.bootstrap, ALERTS)
            began = time.monotonic()
            for message in messages:
                bare.send(message, note)
            bare.flush()
            return coverage.await_ends(ends) - began, coverage.passed

    def _bare(self, count: int) -> float:
        messages = cycled(self._ready, count)
        with self._engine.topic("bare") as topic:
            order = {
                "bootstrap": self._engine.bootstrap,
                "topics": [topic],
                "work": "bytes",
                "expect": count,
            }
            log = self._context.folder / "consumer.log"
            with reader_process(self._context, order, log) as second:
                bare = RawProducer(self._engine.bootstrap, topic)
                began = time.monotonic()
                for message in messages:
                    bare.send(message)
                bare.flush()
                return float(second.findings()["last"]) - began
