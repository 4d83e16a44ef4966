"""The pass alone: a visit that lies in Kafka is judged, sent to its owners, and accounted for."""

import json
import math
from abc import abstractmethod

from nightwire.benchmarks.environment.filter_engine import ALERTS
from nightwire.benchmarks.model.sample import Figures, Kind
from nightwire.benchmarks.model.scenario import Experiment, RunError
from nightwire.benchmarks.scenarios.filters.visits import FilterSetting
from nightwire.benchmarks.workers.client import reader_process, worker_process

HERE = "nightwire.benchmarks.scenarios.filters"


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


class BesideAlternative(Backlog):
    """The pass of a visit that lies in Kafka; the baseline is an alternative to the engine."""

    alternative = ""

    def __init__(self, setting: FilterSetting) -> None:
        super().__init__(setting)
        self.name = f"pass-beside-{self.alternative}"
        self.figure = f"pass_beside_{self.alternative}_seconds"

    def run_once(self, kind: Kind) -> Figures:
        """Judge one visit, by the engine or by the alternative."""
        judge = self.pass_seconds if kind is Kind.SUBJECT else self.alternative_seconds
        return {self.figure: judge(self.alerts)}

    @abstractmethod
    def alternative_seconds(self, count: int) -> float:
        """Return how long the alternative takes over a visit of *count* alerts. [s]"""

    def _order(self, topic: str) -> dict[str, object]:
        """Return where the alternative reads, and the filters as Python functions."""
        sources = self._setting.context.folder / f"sources-{self.count}.json"
        sources.write_text(json.dumps([one.function for one in self._setting.filters()]))
        return {"bootstrap": self._setting.engine.bootstrap, "topic": topic, "sources": str(sources)}


class BesideFunctions(BesideAlternative):
    """… a process that decodes alerts whole and calls each filter's function; it sends nothing."""

    alternative = "functions"

    def alternative_seconds(self, count: int) -> float:
        """Return how long the functions take for a visit. [s]"""
        with self._setting.engine.topic("functions") as topic:
            self._setting.visits.send_at_once(topic, count)
            order = {**self._order(topic), "expect": count}
            with worker_process(
                self._setting.context, f"{HERE}.functions", order, role="functions"
            ) as worker:
                worker.await_ready()
                found = worker.findings()
        return float(found["last"] - found["began"])


class BesideQueries(BesideAlternative):
    """… one query per user over Spark's own Kafka source."""

    alternative = "queries"

    def alternative_seconds(self, count: int) -> float:
        """Return how long the queries take for the second visit that they see. [s]"""
        with self._setting.engine.topic("queries") as topic, self._setting.engine.topic("passed") as out:
            order = {**self._order(topic), "out": out}
            with worker_process(self._setting.context, f"{HERE}.queries", order, role="queries") as worker:
                worker.await_ready()
                for _turn in range(2):
                    self._setting.visits.send_at_once(topic, count)
                    worker.signal()
                    found = worker.receive()
        if "seconds" not in found:
            raise RunError(f"the queries said {found}")
        return float(found["seconds"])
