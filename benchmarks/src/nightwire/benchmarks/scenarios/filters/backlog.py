"""The pass alone: a visit that lies in Kafka is judged, sent to its owners, and accounted for."""

import math

from nightwire.benchmarks.environment.filter_engine import ALERTS
from nightwire.benchmarks.model.scenario import Experiment
from nightwire.benchmarks.model.sample import Figures, Kind
from nightwire.benchmarks.scenarios.filters.visits import FilterSetting
from nightwire.benchmarks.workers.client import reader_process

WARM_UP = 3
"""Visits that are judged before the first that counts: Java warms up, topics get their first record."""


class Backlog(Experiment):
    """A visit appears in Kafka at one moment → filters judge it, copies are acknowledged, accounts written.

    The baseline is a plain librdkafka consumer that takes the bytes of such a visit.

    Args:
        it: What is measured.
        alerts: Alerts of a visit, where not as its context says.
    """

    def __init__(self, it: FilterSetting, alerts: int | None = None) -> None:
        self._it, self.count = it, it.count
        self.alerts = alerts or it.context.size.alerts
        self.name = f"pass-{it.count}-filters-{self.alerts}-alerts"
        self.seconds: list[float] = []

    def prepare(self) -> None:
        """Make the filters live, and have the engine judge some visits by them."""
        self._it.context.say(f"making {self.count:,} filters live")
        self._it.engine.live(self._it.filters())
        for _turn in range(WARM_UP):
            self._judged(self.alerts)
        self.seconds.clear()

    def run_once(self, kind: Kind) -> Figures:
        """Judge one visit, or consume one."""
        if kind is Kind.SUBJECT:
            before = self._it.engine.sending()
            taken = self._judged(self.alerts)
            sending = self._it.engine.sending() - before
        else:
            taken, sending = self._consumed(self.alerts), 0.0
        if self.alerts != self._it.context.size.alerts:
            return {f"pass_seconds_{self.alerts}_alerts": taken}
        found = {f"pass_seconds_{self.count}_filters": taken}
        if not math.isnan(sending):
            found[f"pass_without_sending_seconds_{self.count}_filters"] = taken - sending
        return found

    def _judged(self, count: int) -> float:
        with self._it.engine.coverage() as coverage:
            began, ends = self._it.visits.send_at_once(ALERTS, count)
            self.seconds.append(coverage.await_ends(ends) - began)
        self._it.engine.forget(ends)
        return self.seconds[-1]

    def _consumed(self, count: int) -> float:
        order = {"bootstrap": self._it.engine.bootstrap, "work": "bytes", "whole": True, "expect": count}
        with self._it.engine.topic("bare") as topic:
            self._it.visits.send_at_once(topic, count)
            log = self._it.context.folder / "consumer.log"
            with reader_process(self._it.context, {**order, "topics": [topic]}, log) as second:
                found = second.findings()
        return float(found["last"] - found["began"])
