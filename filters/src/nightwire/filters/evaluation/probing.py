"""Which conditions of filters stop most alerts, asked of samples now and then.

A sample of a batch is judged by instrumented copies of some filters, in turn, within a share of the
time that judging takes.  One that was late in this batch is not asked; one that is late with the
answer is never asked again.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from nightwire.filters.evaluation.results import Array, Verdict
from nightwire.filters.evaluation.rowwise import RowJudge, take_rows
from nightwire.filters.language import evaluate_all
from nightwire.filters.model.live_filter import FilterVersion, LiveFilter
from nightwire.filters.model.text_facts import Probe
from nightwire.filters.reading.alerts import Alerts
from nightwire.filters.reading.requirements import NumberedFilter

NAME = "-stopped"
"""Ends the name of a probe: no filter's, so that nothing of it is taken for the filter's own."""


SHARE = 0.02
"""Of the time of judging, how much may be spent on this."""

SAVED = 0.02
"""Most that is saved up for later. [s]"""

SAMPLE = 64
"""Most alerts that a filter is asked about at once."""

REMEMBERED = 4096
"""Most filters that are remembered to be beyond asking."""

Answer = tuple[int, dict[str, int]]
"""The number of a filter, and how many alerts each of its conditions stopped."""


@dataclass
class Prober:
    """Asks about the alerts of one survey, in one worker."""

    _credit: float = 0.0
    _turn: int = 0
    _silent: set[FilterVersion] = field(default_factory=set)

    def ask(
        self,
        alerts: Alerts,
        filters: Sequence[NumberedFilter],
        verdicts: Sequence[Verdict],
        rowwise: RowJudge,
        spent: float,
    ) -> Sequence[Verdict]:
        """Return *verdicts*, some of them with the conditions that stopped a sample.

        Args:
            alerts: What was judged.
            filters: By whom, with the fields that they read.
            verdicts: What they results.
            rowwise: Judges by filters that are code.
            spent: Time that judging took. [s]
        """
        self._credit = min(self._credit + SHARE * spent, SAVED)
        late = {one.number for one in verdicts if one.late or one.fault}
        able = [one for one in filters if one[0] not in late]
        if self._credit <= 0 or not able:
            return verdicts
        found = dict(self._answers(sample(alerts), able, rowwise))
        return [replace(one, stopped=found.get(one.number, {})) for one in verdicts]

    def _answers(self, alerts: Alerts, able: Sequence[NumberedFilter], rowwise: RowJudge) -> Iterator[Answer]:
        """Yield answers, filter after filter in turn, until the time is spent or all were asked."""
        start = self._turn % len(able)
        for number, live in [*able[start:], *able[:start]]:
            if self._credit <= 0:
                return
            began = time.monotonic()
            stopped = self._stopped(number, live, alerts, rowwise)
            self._turn += 1
            self._credit -= time.monotonic() - began
            if stopped:
                yield number, stopped

    def _stopped(self, number: int, live: LiveFilter, alerts: Alerts, rowwise: RowJudge) -> dict[str, int]:
        version = (live.key, live.version)
        if version in self._silent or (one := live.text_facts.probe) is None:
            return {}
        try:
            stopping = (
                _ask_code(instrumented(live, one), number, alerts, rowwise)
                if one.source
                else _ask_compiled(one, alerts)
            )
        except Exception:  # noqa: BLE001 - what cannot be asked is not worth a batch
            stopping = None
        if stopping is not None:
            return counted(one.conditions, stopping)
        if len(self._silent) >= REMEMBERED:
            self._silent.clear()
        self._silent.add(version)
        return {}


def instrumented(live: LiveFilter, one: Probe) -> LiveFilter:
    """Return a filter that is code, instrumented."""
    return replace(live, name=live.name + NAME, source=one.source, transform="")


def _ask_compiled(one: Probe, alerts: Alerts) -> Array:
    """Return the numbers of the conditions that stopped alerts, from 1; 0 where none did."""
    results = evaluate_all(one.programs, alerts.table)
    if one.numbered:
        return np.nan_to_num(results[0].rank)
    failed = ~np.stack([each.passed for each in results])
    return np.where(failed.any(axis=0), failed.argmax(axis=0) + 1, 0)


def _ask_code(live: LiveFilter, number: int, alerts: Alerts, rowwise: RowJudge) -> Array | None:
    """Return the numbers of the conditions that stopped alerts; None if they came too late."""
    (verdict,) = rowwise(alerts, [(number, live)])
    return None if verdict.late else np.nan_to_num(verdict.rank)


def counted(conditions: Sequence[str], stopping: Array) -> dict[str, int]:
    """Return how many alerts each of *conditions* stopped, those of equal text together.  Pure."""
    counts: dict[str, int] = {}
    for text, count in zip(conditions, np.bincount(stopping.astype(np.int64), minlength=1)[1:], strict=False):
        if count:
            counts[text] = counts.get(text, 0) + int(count)
    return counts


def sample(alerts: Alerts) -> Alerts:
    """Return so many of *alerts* as are asked about, from all over."""
    count = len(alerts.table)
    rows = np.unique(np.linspace(0, count - 1, min(count, SAMPLE)).astype(np.int64))
    values = [alerts.values[row] for row in rows.tolist()] if alerts.values else ()
    return replace(take_rows(alerts, rows), values=values)
