"""Trying a filter on recent alerts before it goes live, and whether the result is good enough.

Compiled filters are tried over columns, all others in the sandbox.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from nightwire.core.catalogues import CatalogueStore
from nightwire.filters.evaluation.rowwise import check_added
from nightwire.filters.language import Program, evaluate
from nightwire.filters.language.vector import NoColumn
from nightwire.filters.model.compilation import Compilation
from nightwire.filters.model.text_facts import load_facts
from nightwire.filters.model.transform import AddedField
from nightwire.filters.reading.decode import decode_batch, decode_columns
from nightwire.filters.reading.matches import MatchError, as_asked, with_matches
from nightwire.filters.reading.recent import Sample
from nightwire.filters.sandbox import Limits, Outcome, RowFilter, Sandbox, SandboxError, Strength
from nightwire.schemas import AlertDecoder, AlertTable, DecodeError, SchemaError, SchemaRegistry, survey

MIN_TIMED_ALERTS = 20
"""Fewest alerts of which the cost of one is an average worth telling."""


@dataclass(frozen=True)
class AdmissionPolicy:
    """The operator's conditions for a filter that goes live.

    Attributes:
        alerts: Recent alerts of each survey that it is tried on.
        share: Largest part of them that may pass.  No limit for filters that send the best few of a
            visit, that read what passed others, or are tried on fewer alerts than *fewest*.
        fewest: Fewest alerts of which the share is limited.
        cpu_ms: CPU time that an alert may cost on average; what is dear goes to the slow lane. [ms]
        memory_mb: Memory that the filter may take. [MB]
        untried: Whether an owner may submit a filter without a trial.
        backfill: Most alerts that a backfill sends; the rest goes to overflow.
    """

    alerts: int = 300
    share: float = 0.05
    fewest: int = 200
    cpu_ms: float = 5.0
    memory_mb: int = 1024
    untried: bool = False
    backfill: int = 1000


@dataclass(frozen=True)
class Trial:
    """The result of a filter on some recent alerts.

    Attributes:
        evaluated: Alerts with a verdict or a failure.
        passed: Alerts that passed.
        faulted: Alerts on which it failed.
        fault: The first failure, with its line.
        broken: The reason why it could not be tried, or was stopped.
        cpu_ms: CPU time for an alert; None where there were too few. [ms]
    """

    evaluated: int = 0
    passed: int = 0
    faulted: int = 0
    fault: str | None = None
    broken: str | None = None
    cpu_ms: float | None = None

    def refusals(self, policy: AdmissionPolicy, *, any_share: bool = False) -> list[str]:
        """Return the reasons for a refusal; *any_share*: the filter may pass all alerts."""
        if self.broken:
            return [self.broken]
        if (self.fault or "").startswith("MemoryError"):
            return [f"too much memory: it takes more than {policy.memory_mb:,} MB: {self.fault}"]
        if self.evaluated and self.faulted == self.evaluated:
            return [f"failed on all of {self.evaluated} recent alerts: {self.fault}"]
        return [*self._too_slow(policy), *(() if any_share else self._too_many(policy))]

    def _too_slow(self, policy: AdmissionPolicy) -> Iterator[str]:
        if self.cpu_ms is not None and self.cpu_ms > policy.cpu_ms:
            yield (
                f"too slow: {self.cpu_ms:.2f} ms of CPU time an alert, limit is {policy.cpu_ms:g} ms: "
                "ask the cheap and selective questions first"
            )

    def _too_many(self, policy: AdmissionPolicy) -> Iterator[str]:
        if self.evaluated < policy.fewest or self.passed <= policy.share * self.evaluated:
            return
        yield (
            f"passes too much: {self.passed} of {self.evaluated} recent alerts, "
            f"{self.passed / self.evaluated:.1%}, limit is {policy.share:.0%}: "
            "ask for more, or return a rank and submit with --choice best"
        )

    def remark(self) -> str:
        """Return the remark on an accepted filter for its owner."""
        if not self.evaluated:
            return "not tried: there are no alerts yet"
        remark = f"tried on {self.evaluated} recent alerts: {self.passed} passed"
        if self.cpu_ms is not None:
            remark += f", {1000 * self.cpu_ms:.0f} µs each"
        return f"{remark}, {self.faulted} failed: {self.fault}" if self.faulted else remark


def combined(trials: list[Trial]) -> Trial:
    """Return the trials on several surveys' alerts as one."""
    costs = [one.cpu_ms for one in trials if one.cpu_ms is not None]
    return Trial(
        sum(one.evaluated for one in trials),
        sum(one.passed for one in trials),
        sum(one.faulted for one in trials),
        next((one.fault for one in trials if one.fault), None),
        next((one.broken for one in trials if one.broken), None),
        max(costs, default=None),
    )


TOP_LEVEL_PROBE = "def nightwire_probe(alert):\n    return False\n"
"""A filter that judges nothing, so that only the source's top level is run."""

CPU_S = 2.0
"""CPU time for a trial on one survey's alerts. [s]"""

TRIAL_S = 30.0
"""After this a trial goes on to no other survey's alerts. [s]"""


class TrialRunner:
    """Tries filters.  For one thread; the sandbox is started by the first filter that needs one.

    Args:
        registry: URL of the schema registry; None for none.
        cache: Folder in which schemas are kept; None for the user's.
        policy: The operator's conditions.
        strength: Strength of the sandbox.
        catalogues: Those that filters may ask for; None for none.
    """

    def __init__(
        self, registry: str | None, cache: Path | None, policy: AdmissionPolicy,
        strength: Strength = "strong", catalogues: CatalogueStore | None = None,
    ) -> None:  # fmt: skip
        self.registry = SchemaRegistry(registry, cache_dir=cache)
        self.policy, self._strength, self.catalogues = policy, strength, catalogues
        self._sandbox: Sandbox | None = None

    def close(self) -> None:
        """End the sandbox and the registry's client."""
        if self._sandbox is not None:
            self._sandbox.close()
        self.registry.close()

    def missing_sandbox(self) -> str | None:
        """Return why filters that are code cannot be judged here; None where they can."""
        try:
            self.sandbox()
        except SandboxError as error:
            return f"it cannot be compiled, and this engine has no sandbox for it: {error}"
        return None

    def run(self, one: RowFilter, compilation: Compilation, samples: Sequence[Sample]) -> Trial:
        """Return the trial of a filter on *samples*, the alerts of some surveys."""
        try:
            return self._run(one, compilation, samples)
        except SandboxError as error:
            self._sandbox = None  # the next trial starts another
            return Trial(broken=f"the sandbox failed, please submit again: {error}")
        except MatchError as error:
            return Trial(broken=str(error))

    def _run(self, one: RowFilter, compilation: Compilation, samples: Sequence[Sample]) -> Trial:
        by_survey: dict[str, list[bytes]] = {}
        for name, value in samples:
            by_survey.setdefault(name, []).append(value)
        if (program := compilation.program) is not None:
            return combined(
                _in_time(partial(self._by_columns, one, program, *part) for part in by_survey.items())
            )
        adds = load_facts(compilation.facts).adds
        parts = [partial(self._by_rows, one, *part, adds) for part in by_survey.items()]
        return combined(_in_time(parts or [partial(self._top_level, one)]))

    def _by_columns(self, one: RowFilter, program: Program, name: str, values: Sequence[bytes]) -> Trial:
        try:
            batch, _ = decode_batch(values, program.names, name, AlertDecoder(self.registry))
            began = time.thread_time()
            table = AlertTable(self.matched(batch, program.names, name), survey(name))
            verdicts = evaluate(program, table)
        except KeyError as error:
            return Trial(broken=f"alerts of survey {name} have no {error.args[0]}")
        except NoColumn as error:
            if one.entry:
                return self._by_rows(one, name, values)
            return Trial(broken=f"the schemas of survey {name} differ: {error}")
        spent = 1000 * (time.thread_time() - began)
        if len(verdicts.needs_python):
            return self._by_rows(one, name, values)
        count = len(table)
        cost = spent / count if count > MIN_TIMED_ALERTS else None
        fault = next((verdicts.faults[row] for row in sorted(verdicts.faults)), None)
        return Trial(count, int(verdicts.passed.sum()), len(verdicts.faults), fault, None, cost)

    def _by_rows(
        self, one: RowFilter, name: str, values: Sequence[bytes], adds: Sequence[AddedField] = ()
    ) -> Trial:
        readable, schemas = self.readable(values, name)
        try:
            first = check_added(self.judged(one, name, readable[:1], schemas), adds)
            if first.killed or first.late or len(readable) < 2:
                return _trial_of([first])
            return _trial_of([first, check_added(self.judged(one, name, readable[1:], schemas), adds)])
        except NoColumn as error:
            return Trial(broken=f"the schemas of survey {name} differ: {error}")

    def judged(
        self, one: RowFilter, name: str, values: Sequence[bytes], schemas: Mapping[int, Any]
    ) -> Outcome:
        """Return the outcome of a filter on alerts of a survey, all of which can be read: given
        what the engine will give it.

        Raises:
            NoColumn: Their schemas do not agree on the types of columns that it is given.
            SandboxError: No process can be had.
        """
        given: dict[str, Any] = {"values": values, "schemas": schemas} if one.fields is None else {}
        paths = AlertTable.fields([*(one.fields or one.canonical), *one.matches], survey(name))
        try:
            batch = decode_columns(AlertDecoder(self.registry), values, paths, patience=0.0).batch
            given["batch"] = as_asked(self.matched(batch, one.matches, name), one.matches)
        except NoColumn:
            if one.fields is not None:
                raise
        return self.sandbox().judge([one], name, **given)[one.key]

    def matched(self, batch: Any, names: Iterable[str], name: str) -> Any:
        """Return alerts of a survey with what catalogues add to them."""
        return batch if self.catalogues is None else with_matches(batch, names, name, self.catalogues)

    def _top_level(self, one: RowFilter) -> Trial:
        """Run the top level of the filter's source, while there are no alerts to try it on."""
        probe = replace(
            one, source=f"{one.source}\n{TOP_LEVEL_PROBE}", entry="nightwire_probe", fields=(), transform=""
        )
        outcome = self.sandbox().judge([probe], "sim", batch=pa.record_batch({"id": [0]}))[one.key]
        found = _trial_of([outcome])
        return Trial(broken=found.broken or found.fault)

    def sandbox(self) -> Sandbox:
        """Return the sandbox, with the limits of a trial.

        Raises:
            SandboxError: None can be had here.
        """
        if self._sandbox is None:
            limits = Limits(cpu_s=CPU_S, memory_mb=self.policy.memory_mb)
            self._sandbox = Sandbox(self._strength, limits)
        return self._sandbox

    def readable(
        self, values: Sequence[bytes], name: str
    ) -> tuple[list[bytes], dict[int, dict[str, object]]]:
        """Return the readable values and their schemas; others become dead letters later."""
        decoder, readable, schemas = AlertDecoder(self.registry), [], {}
        for value in values:
            try:
                alert = decoder.decode(value)
                survey(name).alert_id(alert.alert)
            except (DecodeError, SchemaError):
                continue
            if alert.schema_id is not None:
                schemas[alert.schema_id] = dict(alert.schema)
            readable.append(value)
        return readable, schemas


def _in_time(parts: Iterable[Callable[[], Trial]]) -> list[Trial]:
    """Return the trials of *parts*, as many as there is time for."""
    began, trials = time.monotonic(), list[Trial]()
    for part in parts:
        if time.monotonic() - began > TRIAL_S:
            return [*trials, Trial(broken=f"too slow: its trial was not done after {TRIAL_S:g} s")]
        trials.append(part())
    return trials


def _trial_of(outcomes: Sequence[Outcome]) -> Trial:
    """Return the trial of the first alert and all others; the cost is that of the others."""
    last = outcomes[-1]
    faults = [(at, row, one.faults[row]) for at, one in enumerate(outcomes) for row in sorted(one.faults)]
    fault = faults[0][2] if faults else None
    broken = None
    if last.late:
        broken = f"too slow: {fault or last.killed}"
    elif last.killed:
        broken = f"the trial ended badly: {fault or last.killed}"
    evaluated = sum(one.evaluated for one in outcomes)
    cost = 1000 * last.cpu_s / last.evaluated if last.evaluated >= MIN_TIMED_ALERTS else None
    passed = sum(len(one.passed) for one in outcomes)
    return Trial(evaluated, passed, len(faults), fault, broken, cost)
