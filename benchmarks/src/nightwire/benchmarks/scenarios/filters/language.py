"""The closed language by itself: what compiling a filter costs, and evaluating it over columns."""

import time
from collections.abc import Callable, Sequence
from functools import partial

from nightwire.benchmarks import Context, Experiment, Figures, Kind
from nightwire.benchmarks.environment.alert_pool import Alert
from nightwire.benchmarks.environment.filter_mixture import MixedFilter, mixture
from nightwire.filters.language import compile_filter, compile_python, evaluate
from nightwire.schemas import AlertTable, Codec, sim_alert_schema, survey

ROWS = 2_500
"""Alerts that are evaluated at once, as in the engine."""

SIMPLE = "bright"
"""The simplest kind: one comparison."""


class Language(Experiment):
    """Source → program; program over columns → verdicts.

    The baselines are Python's own: ``compile`` of the same source, and a function called for each
    alert.
    """

    name = "language"

    def __init__(self, context: Context, pool: Sequence[Alert]) -> None:
        self._context, self._pool = context, pool
        self._filters: list[MixedFilter] = []

    def prepare(self) -> None:
        """Make filters, and the columns and views that they are evaluated on."""
        self._filters = [one for one in mixture(100, 0, self._pool) if not one.kind.sql]
        self._simple = next(one for one in self._filters if one.kind.name == SIMPLE)
        self._sim, codec = survey("sim"), Codec(sim_alert_schema())
        some = [self._pool[row % len(self._pool)] for row in range(ROWS)]
        self._program = compile_python(self._simple.source)
        paths = AlertTable.fields(self._program.names, self._sim, codec.schema)
        self._batch = codec.columns([codec.encode(alert) for alert in some], paths)
        self._views = [self._sim.view(alert) for alert in some]
        self._keep = compile_filter(self._simple.source, "keep")
        for kind in Kind:
            self.run_once(kind)

    def run_once(self, kind: Kind) -> Figures:
        """Compile each filter, and evaluate the simple one, both by us or by Python."""
        ours = kind is Kind.SUBJECT
        compile_one: Callable[[str], object] = compile_python if ours else _compiled
        seconds = sorted(timed(partial(compile_one, one.source)) for one in self._filters)
        return {
            "compile_us": 1e6 * sum(seconds) / len(seconds),
            "compile_p90_us": 1e6 * seconds[len(seconds) * 9 // 10],
            "evaluate_simple_us": 1e6 * timed(self._evaluate if ours else self._call, turns=5) / ROWS,
        }

    def _evaluate(self) -> None:
        evaluate(self._program, AlertTable(self._batch, self._sim))

    def _call(self) -> None:
        for view in self._views:
            self._keep(view)


def timed(work: Callable[[], object], turns: int = 3) -> float:
    """Return the shortest time of a few *turns* of *work*. [s]"""
    seconds = []
    for _ in range(turns):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def _compiled(source: str) -> object:
    return compile(source, "filter", "exec")
