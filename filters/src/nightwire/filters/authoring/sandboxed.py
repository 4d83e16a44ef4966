"""A filter tried by its owner: examined as the engine will do, and judged alert by alert.

Its code runs in the sandbox alone, under the limits of the engine's trial.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from nightwire.core.catalogues import CatalogueError, CatalogueStore, catalogues_here
from nightwire.filters.admission.catalogue_names import keep_watchlist
from nightwire.filters.admission.examination import Examination, examine, lane_remark, row_filter
from nightwire.filters.admission.trial import AdmissionPolicy, TrialRunner
from nightwire.filters.authoring.client import default_owner
from nightwire.filters.authoring.report import JudgedAlert, Report, sql_report
from nightwire.filters.authoring.watchlist import TRIED
from nightwire.filters.language import FilterError, instrumented_copy
from nightwire.filters.language.vector import NoColumn
from nightwire.filters.model.lane_choice import LaneLoad
from nightwire.filters.model.text_facts import TextFacts, load_facts
from nightwire.filters.reading.matches import as_asked
from nightwire.filters.reading.recent import Sample
from nightwire.filters.sandbox import Outcome, RowFilter, SandboxError, Strength
from nightwire.schemas import AlertDecoder, AlertView, survey

PORTION = 300
"""Alerts for which the limits hold, as in the engine's trial."""

POLICY = AdmissionPolicy(untried=True)
"""What operators ask for unless they say otherwise."""


def tried_targets() -> str:
    """Return the name under which targets are known to a filter that is tried with them."""
    return f"{default_owner()}/{TRIED}"


def try_submission(
    request: Mapping[str, Any],
    samples: Sequence[Sample],
    registry: str | None,
    examined: Sequence[Sample] | None = None,
    strength: Strength = "weak",
) -> Report:
    """Return the report on a submission, with what `submit` would say of it.

    Args:
        request: The fields of a submission.
        samples: Alerts.
        registry: The schema registry's URL; None for none.
        examined: The alerts on which the engine would try it; by default some of *samples*.
        strength: Of the sandbox.

    Raises:
        FilterError: It is no filter, or cannot be tried here.
    """
    request = {**request, "owner": default_owner(), "name": TRIED}
    with catalogues_for(request) as catalogues:
        trials = TrialRunner(registry, None, POLICY, strength, catalogues)
        return _tried(request, samples, examined, trials)


@contextmanager
def catalogues_for(request: Mapping[str, Any]) -> Iterator[CatalogueStore | None]:
    """Yield the catalogues that are here; with the targets that come with *request*, `tried`.

    Raises:
        FilterError: These are no watchlist.
    """
    here = catalogues_here()
    if not request.get("watchlist"):
        yield here
        return
    with TemporaryDirectory() as folder:
        store = CatalogueStore(Path(folder))
        if here is not None:
            (store.folder / "shared").symlink_to(here.folder / "shared")
        try:
            keep_watchlist(store, request)
        except CatalogueError as error:
            raise FilterError(f"its watchlist: {error}") from error
        yield store


def _tried(
    request: Mapping[str, Any],
    samples: Sequence[Sample],
    examined: Sequence[Sample] | None,
    trials: TrialRunner,
) -> Report:
    try:
        some = samples[:: -(-len(samples) // PORTION) or 1]
        examination = examine(request, some if examined is None else examined, trials)
        if request["language"] == "sql":
            found = _sql_report(request, samples, trials, load_facts(examination.compilation.facts))
        else:
            found = _python_report(request, samples, trials, load_facts(examination.compilation.facts))
    except SandboxError as error:
        raise FilterError(f"it cannot be tried here, without a sandbox: {error}") from error
    finally:
        trials.close()
    return replace(found, remarks=[verdict(examination), *examination.compilation.remark_lines])


def _sql_report(
    request: Mapping[str, Any], samples: Sequence[Sample], trials: TrialRunner, facts: TextFacts
) -> Report:
    name, matches = request["survey"], facts.matches

    def matched(batch: Any) -> Any:
        return as_asked(trials.matched(batch, matches, name), matches)

    return sql_report(request["source"], name, samples, trials.registry, matched)


def verdict(examination: Examination) -> str:
    """Return what `submit` would say, in one line."""
    if examination.refusals:
        return f"would be refused: {'; '.join(examination.refusals)}"
    lane = lane_remark("", examination, LaneLoad())
    return f"would be accepted: {examination.remarks[0]}; {lane}"


def _python_report(
    request: Mapping[str, Any], samples: Sequence[Sample], trials: TrialRunner, facts: TextFacts
) -> Report:
    """Return the report on a function, survey after survey."""
    judged: list[JudgedAlert] = []
    spent = 0.0
    words = (request["owner"], request["name"], 0, request["source"], request["entry"])
    one = row_filter(words, facts)
    asking, conditions = _asking(one, facts)
    for name in dict.fromkeys(name for name, _ in samples):
        values, schemas = trials.readable([value for whose, value in samples if whose == name], name)
        decoder = AlertDecoder(trials.registry)
        for at in range(0, len(values), PORTION):
            part = values[at : at + PORTION]
            outcome, stopping = _judged(one, asking, name, part, schemas, trials)
            views = [survey(name).view(decoder.decode(value).alert) for value in part[: outcome.evaluated]]
            judged += _alerts(views, outcome, stopping, conditions)
            spent += outcome.cpu_s
            if outcome.stopped:
                break
    return Report(request["entry"], judged, 1e6 * spent / max(1, len(judged)))


def _asking(one: RowFilter, facts: TextFacts) -> tuple[RowFilter | None, Sequence[str]]:
    """Return the copy that returns the number of the condition that stopped an alert, and these."""
    if facts.probe is None:
        return None, ()
    source, conditions = instrumented_copy(one.source, one.entry)
    return replace(one, name=f"{one.name}-stopped", source=source), conditions


def _judged(
    one: RowFilter, asking: RowFilter | None, name: str, values: Sequence[bytes],
    schemas: Mapping[int, Any], trials: TrialRunner,
) -> tuple[Outcome, Mapping[int, int]]:  # fmt: skip
    """Return the outcome, and by row the number of the condition that stopped it."""
    try:
        outcome = trials.judged(one, name, values, schemas)
    except NoColumn as error:
        raise FilterError(f"the schemas of survey {name} differ: {error}") from error
    if outcome.stopped or asking is None:
        return outcome, {}
    asked = trials.judged(asking, name, values, schemas)
    numbers = np.nan_to_num(asked.rank).astype(int).tolist()
    return outcome, dict(zip(asked.passed.tolist(), numbers, strict=True))


def _alerts(
    views: Sequence[AlertView], outcome: Outcome, stopping: Mapping[int, int], conditions: Sequence[str]
) -> Iterator[JudgedAlert]:
    """Yield the verdict on each of *views*."""
    ranks = dict(zip(outcome.passed.tolist(), outcome.rank.tolist(), strict=True))
    for row, view in enumerate(views):
        rank = ranks.get(row)
        number = stopping.get(row, 0)
        yield JudgedAlert(
            view,
            passed=row in ranks,
            rank=None if rank is None or np.isnan(rank) else rank,
            stopped=conditions[number - 1] if row not in ranks and number else None,
            stage=0 if row in ranks else number,
            fault=outcome.faults.get(row),
        )
