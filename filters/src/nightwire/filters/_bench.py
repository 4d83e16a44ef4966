"""Trying a filter on recent alerts: a compiled one over columns, any other in the sandbox."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from nightwire.filters._columns import table_of
from nightwire.filters._compilation import Compilation
from nightwire.filters._decoding import NoColumn
from nightwire.filters._recent import Sample
from nightwire.filters._rowwise import fitting
from nightwire.filters._shape import declared
from nightwire.filters._trial import WARM, Rules, Trial, together
from nightwire.filters.language import Program, evaluate
from nightwire.filters.sandbox import Limits, Outcome, RowFilter, Sandbox, SandboxError, Strength
from nightwire.schemas import AlertDecoder, DecodeError, SchemaError, SchemaRegistry, survey

PROBE = "def nightwire_probe(alert):\n    return False\n"
"""A filter that judges nothing, so that only the source's top level is run."""

CPU_S = 2.0
"""CPU time for a trial on one survey's alerts. [s]"""


class Bench:
    """Tries filters.  For one thread; the sandbox is started by the first filter that needs one.

    Args:
        registry: URL of the schema registry.
        cache: Folder in which schemas are kept.
        rules: What a filter must satisfy.
        strength: Of the sandbox.
    """

    def __init__(self, registry: str, cache: Path, rules: Rules, strength: Strength = "strong") -> None:
        self._registry = SchemaRegistry(registry, cache_dir=cache)
        self._rules, self._strength = rules, strength
        self._sandbox: Sandbox | None = None

    def close(self) -> None:
        """End the sandbox and the registry's client."""
        if self._sandbox is not None:
            self._sandbox.close()
        self._registry.close()

    def lack(self) -> str | None:
        """Say why filters that are code cannot be judged here; None where they can."""
        try:
            self._opened()
        except SandboxError as error:
            return f"it cannot be compiled, and this engine has no sandbox for it: {error}"
        return None

    def tried(self, one: RowFilter, made: Compilation, samples: Sequence[Sample]) -> Trial:
        """Return what a filter does with *samples*, the alerts of some surveys."""
        try:
            return self._tried(one, made, samples)
        except SandboxError as error:
            self._sandbox = None  # the next trial starts another
            return Trial(broken=f"the sandbox failed, please submit again: {error}")

    def _tried(self, one: RowFilter, made: Compilation, samples: Sequence[Sample]) -> Trial:
        by_survey: dict[str, list[bytes]] = {}
        for name, value in samples:
            by_survey.setdefault(name, []).append(value)
        if made.program is not None:
            return together([self._by_columns(one, made.program, *part) for part in by_survey.items()])
        return together([self._by_rows(one, *part) for part in by_survey.items()] or [self._top_level(one)])

    def _by_columns(self, one: RowFilter, program: Program, name: str, values: Sequence[bytes]) -> Trial:
        try:
            table, _ = table_of(values, program.names, name, AlertDecoder(self._registry))
            began = time.thread_time()
            verdicts = evaluate(program, table)
        except KeyError as error:
            return Trial(broken=f"alerts of survey {name} have no {error.args[0]}")
        except NoColumn as error:
            if one.entry:
                return self._by_rows(one, name, values)
            return Trial(broken=f"the schemas of survey {name} differ: {error}")
        spent = 1000 * (time.thread_time() - began)
        if len(verdicts.unsure):
            return self._by_rows(one, name, values)
        count = len(table)
        cost = spent / count if count > WARM else None
        fault = next((verdicts.faults[row] for row in sorted(verdicts.faults)), None)
        return Trial(count, int(verdicts.passed.sum()), len(verdicts.faults), fault, None, cost)

    def _by_rows(self, one: RowFilter, name: str, values: Sequence[bytes]) -> Trial:
        sound, schemas = self._sound(values, name)
        sandbox = self._opened()
        adds = declared(one.source) if one.transform else ()
        first = fitting(sandbox.judge([one], name, values=sound[:1], schemas=schemas)[one.key], adds)
        if first.killed or first.late or len(sound) < 2:
            return _told([first])
        rest = fitting(sandbox.judge([one], name, values=sound[1:], schemas=schemas)[one.key], adds)
        return _told([first, rest])

    def _top_level(self, one: RowFilter) -> Trial:
        """Run what the filter does before it sees an alert; for a time without alerts."""
        probe = replace(
            one, source=f"{one.source}\n{PROBE}", entry="nightwire_probe", fields=(), transform=""
        )
        outcome = self._opened().judge([probe], "sim", batch=pa.record_batch({"id": [0]}))[one.key]
        found = _told([outcome])
        return Trial(broken=found.broken or found.fault)

    def _opened(self) -> Sandbox:
        if self._sandbox is None:
            limits = Limits(cpu_s=CPU_S, memory_mb=self._rules.memory_mb)
            self._sandbox = Sandbox(self._strength, limits)
        return self._sandbox

    def _sound(self, values: Sequence[bytes], name: str) -> tuple[list[bytes], dict[int, dict[str, object]]]:
        """Return those of *values* that can be read, and their schemas; others go to dead-letters later."""
        decoder, sound, schemas = AlertDecoder(self._registry), [], {}
        for value in values:
            try:
                alert = decoder.decode(value)
                survey(name).alert_id(alert.alert)
            except (DecodeError, SchemaError):
                continue
            if alert.schema_id is not None:
                schemas[alert.schema_id] = dict(alert.schema)
            sound.append(value)
        return sound, schemas


def _told(outcomes: Sequence[Outcome]) -> Trial:
    """Return what became of the first alert, and of all others; the cost is told by the others alone."""
    last = outcomes[-1]
    faults = [(at, row, one.faults[row]) for at, one in enumerate(outcomes) for row in sorted(one.faults)]
    fault = faults[0][2] if faults else None
    broken = None
    if last.late:
        broken = f"too slow: {fault or last.killed}"
    elif last.killed:
        broken = f"the trial ended badly: {fault or last.killed}"
    evaluated = sum(one.evaluated for one in outcomes)
    cost = 1000 * last.cpu_s / last.evaluated if last.evaluated >= WARM else None
    passed = sum(len(one.passed) for one in outcomes)
    return Trial(evaluated, passed, len(faults), fault, broken, cost)
