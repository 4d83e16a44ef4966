"""How long the filter engine takes over a visit, beside a consumer that only takes the bytes."""

import time

from nightwire.benchmarks.environment.alert_pool import ReadyMessage
from nightwire.benchmarks.environment.filter_engine import ALERTS, FilterEngine
from nightwire.benchmarks.model.sample import Figures, Kind
from nightwire.benchmarks.model.scenario import Context, Experiment
from nightwire.benchmarks.workers.alerts.feed import RawProducer, cycled
from nightwire.benchmarks.workers.client import reader_process

WARM_UP = 500
"""Alerts that the engine judges before the first pair: Java compiles while it runs."""


class Filtering(Experiment):
    """Ready-made bytes → Kafka → the example filters, copies and accounts written."""

    name = "filter"

    def __init__(self, context: Context, engine: FilterEngine, ready: list[ReadyMessage]) -> None:
        self._context, self._engine, self._ready = context, engine, ready

    def prepare(self) -> None:
        """Start the engine, submit the example filters, and have it judge some alerts."""
        self._engine.start()
        for _turn in range(2):
            self._through_engine(min(WARM_UP, self._context.size.alerts))

    def run_once(self, kind: Kind) -> Figures:
        """Send one visit; wait until the engine has accounted for it, or a consumer has it."""
        count = self._context.size.alerts
        if kind is Kind.SUBJECT:
            seconds, passed = self._through_engine(count)
            found = {"filter_passed": float(passed)}
        else:
            seconds, found = self._through_raw(count), {}
        return {"filter_pass_seconds": seconds, "filter_alerts_per_second": count / seconds, **found}

    def _through_engine(self, count: int) -> tuple[float, int]:
        """Return how long a visit took [s], and how many of its alerts passed a filter."""
        messages = cycled(self._ready, count)
        note, ends = self._engine.delivered()
        with self._engine.coverage() as coverage:
            raw = RawProducer(self._engine.bootstrap, ALERTS)
            began = time.monotonic()
            for message in messages:
                raw.send(message, note)
            raw.flush()
            return coverage.await_ends(ends) - began, coverage.passed

    def _through_raw(self, count: int) -> float:
        messages, bootstrap = cycled(self._ready, count), self._engine.bootstrap
        with (
            self._engine.topic("raw") as topic,
            reader_process(self._context, bootstrap, [topic], "bytes", expect=count) as reader,
        ):
            raw = RawProducer(bootstrap, topic)
            began = time.monotonic()
            raw.send_all(messages)
            return float(reader.findings()["last"]) - began
