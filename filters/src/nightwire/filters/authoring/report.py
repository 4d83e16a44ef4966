"""A filter tried on a sample: alerts that pass, conditions that stop others, the cost.

Python is judged in the sandbox (`sandboxed`), and SQL over columns, as the engine judges them.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nightwire.filters.authoring.notebook import SourceMap
from nightwire.filters.language import (
    FilterError,
    compile_sql,
    evaluate,
    sql_conditions,
)
from nightwire.filters.language.vector import NoColumn
from nightwire.filters.reading.decode import decode_batch
from nightwire.filters.reading.recent import Sample
from nightwire.schemas import AlertDecoder, AlertTable, AlertView, SchemaRegistry, survey


@dataclass(frozen=True)
class JudgedAlert:
    """One alert of the sample, and the filter's verdict on it.

    Attributes:
        alert: The alert.
        passed: Whether it passed.
        rank: The number that the filter returned, where it returned one.
        stopped: The condition that stopped it, where one did.
        stage: Its number, in the order in which they are asked, from 1; 0 where none did.
        fault: Why the filter failed on it, where it did.
    """

    alert: AlertView
    passed: bool
    rank: float | None = None
    stopped: str | None = None
    fault: str | None = None
    stage: int = 0

    @property
    def why(self) -> str:
        """The verdict in words."""
        if self.passed:
            return "passed" if self.rank is None else f"passed, rank {self.rank:g}"
        return f"failed: {self.fault}" if self.fault else f"stopped by {self.stopped or 'the filter'}"


@dataclass(frozen=True)
class Report:
    """The verdicts of a filter on a sample; a notebook shows it as a page, ``print`` as text.

    Attributes:
        name: The filter's function.
        judged: One per alert of the sample, in its order.
        cost_us: CPU time for an alert, mean. [µs]
        remarks: What `submit` would say of it, and how the engine will judge it.
    """

    name: str
    judged: Sequence[JudgedAlert]
    cost_us: float = 0.0
    remarks: Sequence[str] = field(default_factory=list)

    @property
    def passed(self) -> list[AlertView]:
        """The alerts that passed."""
        return [one.alert for one in self.judged if one.passed]

    @property
    def just_missed(self) -> list[JudgedAlert]:
        """Those that a condition stopped, the ones that came furthest first."""
        return sorted((one for one in self.judged if one.stage), key=lambda one: -one.stage)

    @property
    def stages(self) -> Counter[str]:
        """Alerts that each condition stopped, and each kind of failure."""
        return Counter(one.why for one in self.judged if not one.passed)

    def lines(self) -> Iterator[str]:
        """Yield the summary, a line each."""
        count, passed = len(self.judged), len(self.passed)
        if not count:
            yield f"{self.name}: there are no alerts to try it on"
            yield from (f"  {remark}" for remark in self.remarks)
            return
        failed = sum(one.fault is not None for one in self.judged)
        yield (
            f"{self.name}: {passed} of {count} alerts pass ({100 * passed / count:.1f} %), {failed} failed; "
            f"{self.cost_us:.3g} µs an alert here"
        )
        yield from (f"  {number:6}  {why}" for why, number in self.stages.most_common())
        yield from (f"  {remark}" for remark in self.remarks)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from nightwire.filters.authoring.page import html_fragment

        return html_fragment(self)


def with_owner_lines(found: Report, names: SourceMap) -> Report:
    """Return a report with the owner's names of the lines of the source."""

    def translate(reason: str | None) -> str | None:
        return None if reason is None else names.translate([reason])[0]

    judged = [
        replace(one, stopped=translate(one.stopped), fault=translate(one.fault)) for one in found.judged
    ]
    return replace(found, judged=judged, remarks=names.translate(found.remarks))


def sql_report(
    condition: str, of_survey: str, samples: Sequence[Sample], registry: SchemaRegistry,
    matched: Callable[[Any], Any] = lambda batch: batch,
) -> Report:  # fmt: skip
    """Judge *samples*, a survey's alerts, by an SQL condition.

    Args:
        condition: The condition.
        of_survey: Whose alerts.
        samples: The alerts.
        registry: Knows their schemas.
        matched: Adds to their columns what catalogues do.

    Raises:
        FilterError: It is no condition, or reads what these alerts do not have.
    """
    parts = sql_conditions(condition)
    programs = [compile_sql(condition, of_survey), *(compile_sql(part, of_survey) for part in parts)]
    values, decoder = [value for _, value in samples], AlertDecoder(registry)
    names = {name for program in programs for name in program.names}
    began = time.perf_counter()
    try:
        batch, rows = decode_batch(values, names, of_survey, decoder)
        table = AlertTable(matched(batch), survey(of_survey))
        whole = evaluate(programs[0], table).passed
        cost = 1e6 * (time.perf_counter() - began) / max(1, len(rows))
        each = [evaluate(program, table).passed for program in programs[1:]]
    except KeyError as error:
        raise FilterError(f"alerts of survey {of_survey} have no {error.args[0]}") from error
    except NoColumn as error:
        raise FilterError(f"the schemas of survey {of_survey} differ: {error}") from error
    alerts = [survey(of_survey).view(decoder.decode(values[row]).alert) for row in rows]
    stages = [next((n for n, ok in enumerate(each, 1) if not ok[at]), 0) for at in range(len(rows))]
    judged = [
        JudgedAlert(alert, passed=True)
        if passed
        else JudgedAlert(alert, passed=False, stopped=[condition, *parts][stage], stage=stage)
        for alert, passed, stage in zip(alerts, np.asarray(whole), stages, strict=True)
    ]
    return Report("the condition", judged, cost, ["compiled: judged over columns"])
