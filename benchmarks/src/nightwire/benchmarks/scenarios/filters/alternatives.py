"""The pass beside what others do: a Python function per filter, and a Spark query per user."""

import json
from pathlib import Path

from nightwire.benchmarks.model.sample import Figures, Kind
from nightwire.benchmarks.model.scenario import RunError
from nightwire.benchmarks.scenarios.filters.backlog import Backlog
from nightwire.benchmarks.scenarios.filters.visits import FilterSetting
from nightwire.benchmarks.workers.client import worker_process

FUNCTIONS = "nightwire.benchmarks.scenarios.filters.functions"
QUERIES = "nightwire.benchmarks.scenarios.filters.queries"


class BesideAlternative(Backlog):
    """The pass of a visit that lies in Kafka; what the baseline does is up to the class."""

    figure = ""

    def __init__(self, it: FilterSetting) -> None:
        super().__init__(it)
        self.name = self.figure.replace("_seconds", "").replace("_", "-")

    def run_once(self, kind: Kind) -> Figures:
        """Judge one visit, by the engine or as others do."""
        return {self.figure: (self._judged if kind is Kind.SUBJECT else self._others)(self.alerts)}

    def _others(self, count: int) -> float:
        raise NotImplementedError

    def _order(self, topic: str) -> dict[str, object]:
        """Return what others are told: where to read, and the filters as Python functions."""
        sources = self._it.context.folder / f"sources-{self.count}.json"
        sources.write_text(json.dumps([one.function for one in self._it.filters()]))
        return {
            "bootstrap": self._it.engine.bootstrap,
            "topic": topic,
            "topics": [topic],
            "sources": str(sources),
        }

    @property
    def _log(self) -> Path:
        return self._it.context.folder / "others.log"


class BesideFunctions(BesideAlternative):
    """… a process that decodes each alert whole and calls each filter's function; nothing is sent."""

    figure = "pass_beside_functions_seconds"

    def _others(self, count: int) -> float:
        with self._it.engine.topic("functions") as topic:
            self._it.visits.send_at_once(topic, count)
            order = {**self._order(topic), "expect": count}
            with worker_process(self._it.context, FUNCTIONS, order, self._log, role="functions") as second:
                second.await_ready()
                found = second.findings()
        return float(found["last"] - found["began"])


class BesideQueries(BesideAlternative):
    """… one query per user over Spark's own Kafka source."""

    figure = "pass_beside_queries_seconds"

    def _others(self, count: int) -> float:
        """Return how long the queries take for the second visit that they see."""
        with (
            self._it.engine.topic("queries") as topic,
            self._it.engine.topic("passed") as out,
            worker_process(
                self._it.context, QUERIES, {**self._order(topic), "out": out}, self._log, role="queries"
            ) as second,
        ):
            second.await_ready()
            for _turn in range(2):
                self._it.visits.send_at_once(topic, count)
                found = second.ask()
        if "seconds" not in found:
            raise RunError(f"the queries said {found}")
        return float(found["seconds"])
