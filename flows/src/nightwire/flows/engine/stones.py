"""Runners of filters, routers, transforms and splits."""

import json
import logging
import threading
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from nightwire.filters.delivery import TransformWriter
from nightwire.filters.language import Condition, Oddities
from nightwire.filters.model import AddedField, Transform, parse_added
from nightwire.filters.sandbox import Limits, RowFilter, Sandbox, SandboxError
from nightwire.filters.sandbox import Outcome as SandboxOutcome
from nightwire.flows.engine.events import Event, Outcome
from nightwire.flows.model import KEPT_FIELD, FlowError, functions
from nightwire.schemas import AlertDecoder, DecodeError, RegistryAwayError, SchemaError, SchemaRegistry, wire

log = logging.getLogger("nightwire.flows")

LIMITS = Limits(cpu_s=10.0, wall_s=15.0, total_s=60.0, nice=10)
"""Of the sandbox, for a portion.  It gives way to others' flows, as slow filters do."""
PORTION = 100
"""Alerts of a portion: those that keep to their own limit never reach that of the portion."""
FIRST_CPU = 2.0
"""CPU time for the first alert of a batch, or after a stop: others have 0.1 s. [s]"""
RETRY_TIME = 60.0
"""Time within a batch for which a function that was stopped is started again. [s]"""


@dataclass(frozen=True)
class ConditionRunner:
    """Runs a filter or router: each event leaves by the first port whose condition it meets.

    Attributes:
        conditions: By port.
        rest: Port of the other events; None to reject them.
        decoder: Of the alerts.
        survey: Of the alerts.
    """

    conditions: Mapping[str, Condition]
    rest: str | None
    decoder: AlertDecoder
    survey: str
    odd: Oddities = field(default_factory=Oddities)

    def run(self, events: Sequence[Event]) -> Outcome:
        """Return the events by port; those that are no alerts are faults.

        An alert on which a condition fails does not meet it, as in filters; why is logged once.

        Raises:
            RegistryAwayError: Ask again later.
        """
        left, outcome = list(events), Outcome()
        for port, condition in self.conditions.items():
            judged = condition.judge([one.value for one in left], self.decoder)
            for n, error in judged.errors.items():
                if isinstance(error, RegistryAwayError):
                    raise error
                outcome.faults.append((left[n], str(error)))
            for why in self.odd.of(judged, self.survey):
                log.warning("%s", why)
            outcome.passed[port] = [left[n] for n in sorted(judged.passed)]
            left = [one for n, one in enumerate(left) if n not in judged.passed and n not in judged.errors]
        if self.rest is not None:
            outcome.passed[self.rest] = left
        return outcome


class OwnerSandbox:
    """The sandbox of one owner's functions, from the first batch to the end of the last stone."""

    def __init__(self, owner: str) -> None:
        self.owner, self._lock = owner, threading.Lock()

    def judge(
        self, one: RowFilter, survey: str, values: Sequence[bytes], schemas: Mapping[int, Any]
    ) -> SandboxOutcome:
        """Return the outcome of a function over some alerts.

        Raises:
            FlowError: The sandbox cannot be started.
        """
        try:
            with self._lock:
                sandbox = self._sandbox
            return sandbox.judge([one], survey, values=values, schemas=schemas)[one.key]
        except SandboxError as error:
            raise FlowError([str(error)]) from error

    @cached_property
    def _sandbox(self) -> Sandbox:
        return Sandbox("strong", LIMITS)  # it ends with us


SANDBOXES: weakref.WeakValueDictionary[str, OwnerSandbox] = weakref.WeakValueDictionary()


def owner_sandbox(owner: str) -> OwnerSandbox:
    """Return the sandbox of *owner*, which all his stones in this process share."""
    return SANDBOXES.setdefault(owner, OwnerSandbox(owner))


@dataclass(frozen=True)
class SandboxFunction:
    """A Python function in the sandbox, which computes fields.

    Attributes:
        sandbox: Of the flow's owner.
        name: ``FLOW.STONE``.
        source: Text of the function.
        adds: The fields that it declares.
    """

    sandbox: OwnerSandbox
    name: str
    source: str
    adds: tuple[AddedField, ...]

    def compute(
        self, events: Sequence[Event], survey: str, registry: SchemaRegistry, faults: list[tuple[Event, str]]
    ) -> Iterator[tuple[Event, str]]:
        """Yield events of *survey* and the fields added to each, as JSON; note others' *faults*.

        Raises:
            FlowError: The sandbox cannot be started.
            RegistryAwayError: Ask again later.
        """
        source, entry = self.source + functions.ACCEPT_ALL, functions.ACCEPT
        one = RowFilter(self.sandbox.owner, self.name, 0, source, entry, transform=functions.TRANSFORM)
        left, schemas, until = [*events], _schemas(events, registry), time.monotonic() + RETRY_TIME
        runs, why = False, None
        while left and (why is None or time.monotonic() < until):
            some, asked = (left[:PORTION], one) if runs else (left[:1], replace(one, cpu_s=FIRST_CPU))
            result = self.sandbox.judge(asked, survey, [event.value for event in some], schemas)
            added, wrong = self._by_row(result)
            yield from ((some[row], text) for row, text in added.items())
            faults += [(some[row], fault) for row, fault in wrong.items()]
            left = [event for row, event in enumerate(left) if row not in added and row not in wrong]
            runs, why = result.stopped is None, result.stopped or why
            if runs and not (added or wrong):
                break
        faults += [(event, f"not computed: {why or 'no answer'}") for event in left]

    def _by_row(self, result: SandboxOutcome) -> tuple[dict[int, str], dict[int, str]]:
        """Return by row the added fields, as JSON, and the faults."""
        texts = dict(zip(result.passed.tolist(), result.added, strict=False))
        checked = {row: parse_added(self.adds, text) for row, text in texts.items()}
        wrong = {row: found for row, found in checked.items() if isinstance(found, str)}
        return {row: text for row, text in texts.items() if row not in wrong}, {**result.faults, **wrong}


def _schemas(events: Sequence[Event], registry: SchemaRegistry) -> dict[int, Mapping[str, Any]]:
    """Return the schemas of *events* by their ids, as far as they are known."""
    found: dict[int, Mapping[str, Any]] = {}
    for one in events:
        try:
            number = wire.unframe(memoryview(one.value))[0]
            found[number] = found.get(number) or registry.codec(number).schema
        except RegistryAwayError:
            raise
        except SchemaError:
            continue  # a container, which brings its own; of others the sandbox says so
    return found


@dataclass(frozen=True)
class SandboxedFilterRunner:
    """Runs a filter whose Python function could not be compiled.

    Attributes:
        function: Adds the field `KEPT_FIELD`.
        survey: Of the alerts.
        registry: Of the alerts' schemas.
    """

    function: SandboxFunction
    survey: str
    registry: SchemaRegistry

    def run(self, events: Sequence[Event]) -> Outcome:
        """Return the alerts that are kept; those on which the function fails are faults."""
        outcome = Outcome()
        judged = self.function.compute(events, self.survey, self.registry, outcome.faults)
        outcome.passed[""] = [one for one, text in judged if json.loads(text)[KEPT_FIELD.name]]
        return outcome


@dataclass(frozen=True)
class TransformRunner:
    """Runs a transform: drops fields, adds means and the fields of a function.

    Attributes:
        transform: The fields dropped and added.
        survey: Of the alerts.
        topic: Subject of the derived schemas.
        writer: Encodes the alerts.
        function: Computes fields; None for none.
    """

    transform: Transform
    survey: str
    topic: str
    writer: TransformWriter
    function: SandboxFunction | None = None

    def run(self, events: Sequence[Event]) -> Outcome:
        """Return the alerts in their new form; those on which the function fails are faults."""
        outcome = Outcome({"": []})
        for one, added in self._added(events, outcome):
            try:
                value = self.writer.value(one.value, self.topic, self.survey, self.transform, added)
            except RegistryAwayError:
                raise
            except (DecodeError, SchemaError) as error:
                outcome.faults.append((one, str(error)))
            else:
                outcome.passed[""].append(replace(one, value=value))
        return outcome

    def _added(self, events: Sequence[Event], outcome: Outcome) -> Iterator[tuple[Event, str]]:
        if self.function is None:
            return ((one, "") for one in events)
        return self.function.compute(events, self.survey, self.writer.registry, outcome.faults)


class SplitRunner:
    """Runs a split: passes all events on to all followers."""

    def run(self, events: Sequence[Event]) -> Outcome:
        """Return *events*."""
        return Outcome({"": list(events)})
