"""The examination of a filter: compiled, its names checked, tried on recent alerts.

The engine examines what is submitted, and `nightwire filter test` what will be.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nightwire.filters.admission.catalogue_names import with_versions
from nightwire.filters.admission.text_process import compile_apart
from nightwire.filters.admission.transform_check import Request, schema_mismatches, surveys_of
from nightwire.filters.admission.trial import TrialRunner
from nightwire.filters.language import SurveySchemas, partial_names, schema_names, unknown_names
from nightwire.filters.language.vector import schemas_of
from nightwire.filters.model.chains import is_derived
from nightwire.filters.model.compilation import Compilation
from nightwire.filters.model.lane_choice import LaneLoad
from nightwire.filters.model.text_facts import TextFacts, load_facts
from nightwire.filters.reading.recent import Sample
from nightwire.filters.reading.requirements import named_columns
from nightwire.filters.sandbox import RowFilter
from nightwire.schemas import AlertDecoder, SchemaRegistry, sim_alert_schema


@dataclass(frozen=True)
class Examination:
    """What came out.

    Attributes:
        compilation: The filter, compiled as far as it can be.
        refusals: Why it may not go live; empty where it may.
        remarks: Remarks to its owner.
        cost_us: CPU time for an alert; None where it was not tried on enough. [µs]
    """

    compilation: Compilation
    refusals: Sequence[str] = ()
    remarks: Sequence[str] = field(default_factory=list)
    cost_us: float | None = None


def examine(request: Request, samples: Sequence[Sample], trials: TrialRunner) -> Examination:
    """Return the examination of a submission.

    Args:
        request: The submission.
        samples: Recent alerts that it would read.
        trials: Tries filters.

    Raises:
        FilterError: It is no filter.
    """
    compilation = with_versions(compile_apart(request), request["owner"], trials.catalogues)
    if reasons := schema_mismatches(request, load_facts(compilation.facts).adds, trials.registry):
        return Examination(compilation, reasons)
    if compilation.program is None and (reason := trials.missing_sandbox()):
        return Examination(compilation, [reason, *compilation.remark_lines])
    unknown, partial = _names(request, compilation, samples, trials)
    if unknown:
        return Examination(compilation, unknown)
    refusals, remark, cost_us = _trial(request, compilation, samples, trials)
    return Examination(compilation, refusals, [remark, *partial, *compilation.remark_lines], cost_us)


def _names(
    request: Request, compilation: Compilation, samples: Sequence[Sample], trials: TrialRunner
) -> tuple[list[str], list[str]]:
    """Return the objections to names that a filter asks for, and the remarks on them."""
    asked = compilation.asked
    known = known_schemas(trials.registry, surveys_of(request), request["sources"], samples)
    return [*unknown_names(asked, known)], [*partial_names(asked, known)]


def known_schemas(
    registry: SchemaRegistry, surveys: Sequence[str], sources: Sequence[str], samples: Sequence[Sample]
) -> list[SurveySchemas]:
    """Return the schemas of the alerts that a filter reads.

    What other filters send on may have fields more or less than its survey's schemas: of these
    alerts, those that came lately say which.

    Args:
        registry: Knows schemas; where it has none of a survey, its alerts may bring theirs along.
        surveys: Whose alerts it judges.
        sources: The topics in which they lie; none for the surveys' own.
        samples: Some of these alerts.
    """
    derived, found = any(map(is_derived, sources)), []
    for name in surveys:
        values = [value for whose, value in samples if whose == name]
        schemas: list[Mapping[str, Any]] = [*registry.of_survey(name)]
        if derived or not schemas:
            came = [*schemas_of(values, AlertDecoder(registry))]
            schemas = [*came, *schemas] if came else []
        if not schemas and not derived and name == "sim":
            schemas = [sim_alert_schema()]
        found.append(SurveySchemas(name, [*map(schema_names, schemas)]))
    return found


def _trial(
    request: Request, compilation: Compilation, samples: Sequence[Sample], trials: TrialRunner
) -> tuple[list[str], str, float | None]:
    """Return the reasons for a refusal that a trial gives, the remark on it, and the cost. [µs]"""
    if not request["trial"]:
        return [], "not tried, as was asked", None
    names = (request["owner"], request["name"], 0, request["source"], request["entry"])
    facts = load_facts(compilation.facts)
    one = row_filter(names, facts, request["transform"])
    trial = trials.run(one, compilation, samples)
    refusals = trial.refusals(trials.policy, any_share=_takes_any_share(request))
    advice = cost_advice(trial.cpu_ms or 0.0, facts, compiled=compilation.program is not None)
    cost_us = None if trial.cpu_ms is None else 1000 * trial.cpu_ms
    return [*refusals, *(advice if refusals else ())], "; ".join([trial.remark(), *advice]), cost_us


def row_filter(names: tuple[str, str, int, str, str], facts: TextFacts, transform: str = "") -> RowFilter:
    """Return the filter as the sandbox tries it.

    Args:
        names: Owner, name, version, source and entry.
        facts: Of its text.
        transform: Its function that computes what is added; empty for none.
    """
    bare = RowFilter(*names, named_columns(facts), None, transform, facts.imports)
    return replace(bare, columns=facts.columns, canonical=facts.canonical, matches=facts.matches)


def lane_remark(owner: str, tried: Examination, load: LaneLoad) -> str:
    """Return which lane judges a filter that was accepted, and what to expect of it."""
    if tried.cost_us is None:
        measured = "judged in the slow lane until it is measured"
        return "judged in the quick lane" if tried.compilation.program else measured
    if load.is_quick(owner, tried.cost_us):
        return "judged in the quick lane"
    return f"judged in the slow lane: {load.forecast(owner, tried.cost_us)}"


DEAR_MS = 0.05
"""From such a cost of an alert on its owner is told how it becomes cheaper. [ms]"""
LIBRARIES = ("astropy", "pandas", "scipy", "healpy")
"""Packages of which one call takes nearly as long for an alert as for ten thousand."""


def cost_advice(cpu_ms: float, facts: TextFacts, *, compiled: bool) -> list[str]:
    """Return what makes a filter cheaper that calls a library for each alert, if that is dear."""
    called = [name for name in LIBRARIES if name in facts.imports]
    if compiled or facts.columns is not None or cpu_ms < DEAR_MS or not called:
        return []
    return [
        f"{called[0]} is called for each alert, {1000 * cpu_ms:.0f} µs: as keep(alerts), over columns, "
        "it is called once for all (docs/user/columns.md)"
    ]


def _takes_any_share(request: Request) -> bool:
    """Return whether a filter may pass any share: best of a visit, derived, or a broker's."""
    best = request["choice"] == "best" and request["cap"] > 0
    return (
        best
        or bool(request["output"])
        or (bool(request["sources"]) and all(map(is_derived, request["sources"])))
    )
