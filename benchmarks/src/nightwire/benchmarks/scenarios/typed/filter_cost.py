"""What a filter costs: to compile it into the closed language, and to run it for an event."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from nightwire.benchmarks import Experiment, Figures, Kind
from nightwire.benchmarks.environment.alert_pool import Alert
from nightwire.benchmarks.scenarios.filters.language import timed
from nightwire.filters.language import Predicate, Program, compile_filter, compile_python, evaluate
from nightwire.schemas import AlertTable, Codec, sim_alert_schema, survey

FILTERS: Mapping[str, str] = {
    "range": """\
def keep(alert):
    if alert["diaSource"]["x"] < 1000.5 or alert["diaSource"]["x"] > 3000.5:
        return True
    return False
""",
    "average": """\
def keep(alert):
    fluxes = [point.flux for point in alert.history if point.flux is not None]
    return len(fluxes) > 0 and sum(fluxes) / len(fluxes) > 100.0
""",
}
"""The paper's Fig. 6, with a pixel for its price, and Fig. 7, a mean, with a limit."""
ALONE = 50
"""Events that are judged one by one."""
TURNS = 20
"""The shortest of so many compilations counts."""


@dataclass(frozen=True)
class PreparedFilter:
    """A filter and the events that it judges.

    Attributes:
        source: Its text.
        program: In the closed language.
        keep: As Python's function.
        batch: The columns that it reads, a row an event.
        events: The same, as dictionaries.
    """

    source: str
    program: Program
    keep: Predicate
    batch: Any
    events: Sequence[Alert]


class FilterCost(Experiment):
    """Source → program; program over columns → verdicts, of many events at once and of one alone.

    The baselines are Python's own: ``compile`` of the same source, and its function, called for
    each event; it gets a new view of it each time, for a view remembers what it was asked.

    Args:
        pool: Alerts, the events.
        events: How many are judged at once.
    """

    name = "cod"

    def __init__(self, pool: Sequence[Alert], events: int) -> None:
        self._pool, self._events = pool, events
        self._sim = survey("sim")
        self._filters: dict[str, PreparedFilter] = {}

    def prepare(self) -> None:
        """Make columns and views; see that program and function judge alike.

        Raises:
            AssertionError: They do not.
        """
        self._filters = {name: self._ready(source) for name, source in FILTERS.items()}
        for name, one in self._filters.items():
            if self._evaluate(one, one.batch).tolist() != [
                bool(one_passed) for one_passed in self._call(one, one.events)
            ]:
                raise AssertionError(f"the filter {name!r} and Python's function do not agree")
        for kind in Kind:
            self.run_once(kind)

    def run_once(self, kind: Kind) -> Figures:
        """Compile and run each filter, by us or by Python."""
        figures: Figures = {}
        for name, one in self._filters.items():
            compiling, together, alone = (self._ours if kind is Kind.SUBJECT else self._pythons)(one)
            figures[f"{name}_compile_us"] = 1e6 * timed(compiling, TURNS)
            figures[f"{name}_run_us"] = 1e6 * timed(together, turns=5) / len(one.events)
            figures[f"{name}_run_alone_us"] = 1e6 * timed(alone, turns=5) / len(one.events[:ALONE])
        return figures

    def _ours(self, one: PreparedFilter) -> tuple[Callable[[], object], ...]:
        rows = [one.batch.slice(row, 1) for row in range(len(one.events[:ALONE]))]
        return (
            partial(compile_python, one.source),
            lambda: self._evaluate(one, one.batch),
            lambda: [self._evaluate(one, row) for row in rows],
        )

    def _pythons(self, one: PreparedFilter) -> tuple[Callable[[], object], ...]:
        return (
            partial(compile, one.source, "filter", "exec"),
            partial(self._call, one, one.events),
            partial(self._call, one, one.events[:ALONE]),
        )

    def _call(self, one: PreparedFilter, events: Sequence[Alert]) -> list[Any]:
        return [one.keep(self._sim.view(event)) for event in events]

    def _evaluate(self, one: PreparedFilter, batch: Any) -> Any:
        return evaluate(one.program, AlertTable(batch, self._sim)).passed

    def _ready(self, source: str) -> PreparedFilter:
        codec, program = Codec(sim_alert_schema()), compile_python(source)
        events = [self._pool[number % len(self._pool)] for number in range(self._events)]
        paths = AlertTable.fields(program.names, self._sim, codec.schema)
        batch = codec.columns([codec.encode(event) for event in events], paths)
        return PreparedFilter(source, program, compile_filter(source, "keep"), batch, events)
