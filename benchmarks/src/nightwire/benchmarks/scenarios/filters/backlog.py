"""The pass alone: a visit that lies in Kafka is judged, sent to its owners, and accounted for."""

import json
import time
from abc import abstractmethod
from collections.abc import Mapping
from itertools import cycle

from nightwire.benchmarks import Experiment, Figures, Kind, RunError
from nightwire.benchmarks.environment.filter_engine import ALERTS
from nightwire.benchmarks.scenarios.filters.phases import COPIES, SEND, counted, phase_figures, spent
from nightwire.benchmarks.scenarios.filters.visits import FilterSetting, topics_of
from nightwire.benchmarks.workers.alerts.feed import RawProducer, cycled
from nightwire.benchmarks.workers.client import reader_process, worker_process

HERE = "nightwire.benchmarks.scenarios.filters"


WARM_UP = 3
"""Visits judged before the first that counts: Java warms up, topics get their first record."""
SMALL = 500
"""Alerts of such a visit where some filters are slow."""
SETTLING = 1.0
"""Until Spark has reported a batch whose accounts are there. [s]"""
COMPRESSION = "lz4"
"""Of the engine's copies."""
TIMES = 10
"""A visit of 100,000 alerts, where an ordinary one has 10,000."""


class Backlog(Experiment):
    """A visit appears in Kafka at one moment → judged by filters, copies and accounts written.

    The baseline is a plain librdkafka consumer that takes the bytes of such a visit, and, for the
    copies, a plain producer that sends as many of their sizes to the same topics.

    Args:
        setting: What is measured.
        alerts: Alerts of a visit, where not as its context says.
    """

    def __init__(self, setting: FilterSetting, alerts: int | None = None) -> None:
        self._setting, self.count = setting, setting.count
        self.alerts = alerts or setting.context.size.alerts
        self.name = f"pass-{setting.count}-{setting.what}-{self.alerts}-alerts"
        whole = self.alerts == setting.context.size.alerts
        self._label = setting.label if whole else f"{self.alerts}_alerts"
        self.figure = f"pass_seconds_{self._label}"
        self._copies = 0
        if not setting.patient:
            self.at_most = dict.fromkeys(Kind, 2)

    def prepare(self) -> None:
        """Make the filters live, and have the engine judge some visits by them."""
        self._setting.context.say(f"making {self.count:,} filters live")
        self._setting.engine.live(self._setting.filters)
        slow = any(one.slow for one in self._setting.filters)
        for _turn in range(WARM_UP):
            self.pass_seconds(min(SMALL, self.alerts) if slow else self.alerts)

    def run_once(self, kind: Kind) -> Figures:
        """Judge one visit, or consume one and send as many copies."""
        if kind is Kind.BASELINE:
            taken = self.consumed(self.alerts)[0]
            named = map(self._named, ("pass", "quick_lane", "pass_without_sending"))
            found = dict.fromkeys(named, taken)
            return found | self._copied(self._sent_raw(self._copies))
        before = self._counted()
        quick, done = self._lanes(self.alerts)
        phases = spent(before, self._counted())
        self._copies = int(phases.get(COPIES, 0))
        sending = phases.get(SEND, 0.0)
        found = {self.figure: done, self._named("quick_lane"): quick}
        found[self._named("pass_without_sending")] = done - sending
        return found | self._copied(sending) | phase_figures(phases)

    def pass_seconds(self, count: int) -> float:
        """Have the engine judge a visit of *count* alerts; return how long that took. [s]"""
        return self._lanes(count)[1]

    def _lanes(self, count: int) -> tuple[float, float]:
        """Have a visit judged; return when the quick lane was done, and when all were. [s]"""
        with self._setting.engine.coverage() as coverage:
            began, ends = self._setting.visits.send_at_once(ALERTS, count)
            quick = coverage.await_ends(ends) - began
            return quick, self._setting.await_lanes(coverage, ends) - began

    def _counted(self) -> Mapping[str, float]:
        time.sleep(SETTLING)
        return counted(self._setting.engine.metrics(), self._setting.engine.slow_filters())

    def _named(self, what: str) -> str:
        return f"{what}_seconds_{self._label}"

    def _copied(self, seconds: float) -> Figures:
        """Return the rate of sending, where anything was sent. [1/s]"""
        name = f"copies_per_second_{self._label}"
        return {name: self._copies / seconds} if self._copies and seconds else {}

    def _sent_raw(self, count: int) -> float:
        """Send *count* alerts to the owners' topics in turn; return how long that took. [s]

        The producer, as the engine's, has written to each of them before.
        """
        raw = RawProducer(self._setting.engine.bootstrap, compression_type=COMPRESSION)
        alerts, owned = cycled(self._setting.visits.ready, count), topics_of(self._setting.filters)
        for number in (len(owned), count):
            began = time.monotonic()
            for message, topic in zip(alerts[:number], cycle(owned), strict=False):
                raw.send(message, topic=topic)
            raw.flush()
        return time.monotonic() - began

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
        sources.write_text(json.dumps([one.function for one in self._setting.filters]))
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


class Large(Backlog):
    """A visit ten times as large, as the largest surveys have, with its producer.

    Dictionaries → Kafka → engine, until it is accounted for; the baseline is a plain consumer of
    such a visit. It is sent in the first pair alone, for it takes minutes.
    """

    at_most = dict.fromkeys(Kind, 1)

    def __init__(self, setting: FilterSetting) -> None:
        super().__init__(setting)
        self._alerts = TIMES * setting.context.size.alerts
        self.name = f"visit-of-{TIMES}-{setting.count}-{setting.what}"

    def run_once(self, kind: Kind) -> Figures:
        """Send one visit; wait until the engine has accounted for it, or a consumer has it."""
        return {"large_visit_seconds": self._judged() if kind is Kind.SUBJECT else self._taken()}

    def _judged(self) -> float:
        with self._setting.engine.coverage() as coverage:
            began, ends = self._setting.visits.send(ALERTS, self._alerts)
            return self._setting.await_lanes(coverage, ends) - began

    def _taken(self) -> float:
        context, engine = self._setting.context, self._setting.engine
        with (
            engine.topic("raw") as topic,
            reader_process(context, engine.bootstrap, [topic], "bytes", expect=self._alerts) as reader,
        ):
            began, _ = self._setting.visits.send(topic, self._alerts)
            return float(reader.findings()["last"]) - began
