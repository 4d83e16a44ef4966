"""The pass alone: a visit that lies in Kafka is judged, sent to its owners, and accounted for."""

import math

from nightwire.benchmarks.environment.filter_engine import ALERTS
from nightwire.benchmarks.model.sample import Figures, Kind
from nightwire.benchmarks.model.scenario import Experiment
from nightwire.benchmarks.scenarios.filters.visits import FilterSetting
from nightwire.benchmarks.workers.client import reader_process

WARM_UP = 3
"""Visits judged before the first that counts: Java warms up, topics get their first record."""


class Backlog(Experiment):
    """A visit appears in Kafka at one moment → judged by filters, copies and accounts written.

    The baseline is a plain librdkafka consumer that takes the bytes of such a visit.

    Args:
        setting: What is measured.
        alerts: Alerts of a visit, where not as its context says.
    """

    def __init__(self, setting: FilterSetting, alerts: int | None = None) -> None:
        self._setting, self.count = setting, setting.count
        self.alerts = alerts or setting.context.size.alerts
        self.name = f"pass-{setting.count}-filters-{self.alerts}-alerts"
        self.figure = f"pass_seconds_{setting.count}_filters"
        if self.alerts != setting.context.size.alerts:
            self.figure = f"pass_seconds_{self.alerts}_alerts"

    def prepare(self) -> None:
        """Make the filters live, and have the engine judge some visits by them."""
        self._setting.context.say(f"making {self.count:,} filters live")
        self._setting.engine.live(self._setting.filters())
        for _turn in range(WARM_UP):
            self.pass_seconds(self.alerts)

    def run_once(self, kind: Kind) -> Figures:
        """Judge one visit, or consume one."""
        if kind is Kind.SUBJECT:
            before = self._setting.engine.sending()
            taken = self.pass_seconds(self.alerts)
            sending = self._setting.engine.sending() - before
        else:
            taken, sending = self.consumed(self.alerts)[0], 0.0
        found = {self.figure: taken}
        if self.alerts == self._setting.context.size.alerts and not math.isnan(sending):
            found[f"pass_without_sending_seconds_{self.count}_filters"] = taken - sending
        return found

    def pass_seconds(self, count: int) -> float:
        """Have the engine judge a visit of *count* alerts; return how long that took. [s]"""
        with self._setting.engine.coverage() as coverage:
            began, ends = self._setting.visits.send_at_once(ALERTS, count)
            seconds = coverage.await_ends(ends) - began
        self._setting.engine.forget(ends)
        return seconds

    def consumed(self, count: int) -> tuple[float, float]:
        """Take such a visit with a plain consumer; return time and CPU time. [s]"""
        context, bootstrap = self._setting.context, self._setting.engine.bootstrap
        with self._setting.engine.topic("raw") as topic:
            self._setting.visits.send_at_once(topic, count)
            with reader_process(context, bootstrap, [topic], "bytes", whole=True, expect=count) as reader:
                found = reader.findings()
        return float(found["last"] - found["began"]), float(found["cpu"])
