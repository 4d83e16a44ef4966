"""The pass beside the alternatives: a Python function per filter, and a Spark query per user."""

import json
from abc import abstractmethod

from nightwire.benchmarks.model.sample import Figures, Kind
from nightwire.benchmarks.model.scenario import RunError
from nightwire.benchmarks.scenarios.filters.backlog import Backlog
from nightwire.benchmarks.scenarios.filters.visits import FilterSetting
from nightwire.benchmarks.workers.client import worker_process

HERE = "nightwire.benchmarks.scenarios.filters"


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
