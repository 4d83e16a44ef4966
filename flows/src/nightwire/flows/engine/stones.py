"""What filters, routers and transforms do with events."""

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
from nightwire.filters.sandbox import Outcome as Said
from nightwire.flows.engine.events import Event, Outcome
from nightwire.flows.model import COMPUTE, EVERY, PASSES, SAID, FlowError
from nightwire.schemas import AlertDecoder, DecodeError, RegistryAwayError, SchemaError, SchemaRegistry, wire

log = logging.getLogger("nightwire.flows")

LIMITS = Limits(cpu_s=10.0, wall_s=15.0, total_s=60.0, nice=10)
"""Of a function and portion.  It gives way to others' flows, as slow filters do."""
PORTION = 100
"""Alerts computed at once: those that keep to their own limit never reach their portion's."""
FIRST = 2.0
"""CPU time for the first alert of a batch, or after a stop: others have 0.1 s. [s]"""
AGAIN = 60.0
"""For so long a function that was stopped is begun again within a batch. [s]"""


@dataclass(frozen=True)
class Sorter:
    """A filter, or a router: sends each event out by the port whose condition it meets first.

    Attributes:
        conditions: By port.
        rest: The port of all others; None: they go no further.
        decoder: Reads alerts.
        survey: Whose.
    """

    conditions: Mapping[str, Condition]
    rest: str | None
    decoder: AlertDecoder
    survey: str
    odd: Oddities = field(default_factory=Oddities)

    def run(self, events: Sequence[Event]) -> Outcome:
        """Return the events by port; what is no alert is a fault.

        An alert on which a condition fails does not meet it, as in filters; why is logged once.

        Raises:
            RegistryAwayError: Ask again later.
        """
        left, outcome = list(events), Outcome()
        for port, condition in self.conditions.items():
            said = condition.judge([one.value for one in left], self.decoder)
            for at, error in said.errors.items():
                if isinstance(error, RegistryAwayError):
                    raise error
                outcome.faults.append((left[at], str(error)))
            for why in self.odd.of(said, self.survey):
                log.warning("%s", why)
            outcome.passed[port] = [left[at] for at in sorted(said.passed)]
            left = [one for at, one in enumerate(left) if at not in said.passed and at not in said.errors]
        if self.rest is not None:
            outcome.passed[self.rest] = left
        return outcome


class Contained:
    """The sandbox of one owner's functions: it begins with the first batch, and ends with the last
    stone that has it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def judge(self, one: RowFilter, survey: str, values: Sequence[bytes], schemas: Mapping[int, Any]) -> Said:
        """Return what a function computes of some alerts.

        Raises:
            FlowError: No process can be had.
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


SANDBOXES: weakref.WeakValueDictionary[str, Contained] = weakref.WeakValueDictionary()


def contained(owner: str) -> Contained:
    """Return the sandbox of an owner, which all his stones here share."""
    return SANDBOXES.setdefault(owner, Contained())


@dataclass(frozen=True)
class Function:
    """A function of Python that computes fields, in the sandbox.

    Attributes:
        sandbox: Of its owner.
        owner: Whose it is.
        name: Of flow and stone.
        source: Its text.
        adds: The fields that it declares.
    """

    sandbox: Contained
    owner: str
    name: str
    source: str
    adds: tuple[AddedField, ...]

    def added(
        self, events: Sequence[Event], survey: str, registry: SchemaRegistry, faults: list[tuple[Event, str]]
    ) -> Iterator[tuple[Event, str]]:
        """Yield events of *survey* with what is added to each, as JSON; note the others' *faults*.

        Raises:
            FlowError: There is no sandbox.
            RegistryAwayError: Ask again later.
        """
        one = RowFilter(self.owner, self.name, 0, self.source + PASSES, EVERY, transform=COMPUTE)
        left, schemas, until = [*events], _schemas(events, registry), time.monotonic() + AGAIN
        runs, why = False, None
        while left and (why is None or time.monotonic() < until):
            some, asked = (left[:PORTION], one) if runs else (left[:1], replace(one, cpu_s=FIRST))
            said = self.sandbox.judge(asked, survey, [event.value for event in some], schemas)
            added, wrong = self._answers(said)
            yield from ((some[row], text) for row, text in added.items())
            faults += [(some[row], fault) for row, fault in wrong.items()]
            left = [event for at, event in enumerate(left) if at not in added and at not in wrong]
            runs, why = said.stopped is None, said.stopped or why
            if runs and not (added or wrong):
                break
        faults += [(event, f"not computed: {why or 'no answer'}") for event in left]

    def _answers(self, said: Said) -> tuple[dict[int, str], dict[int, str]]:
        """Return by row what is added, as JSON, and why nothing is."""
        texts = dict(zip(said.passed.tolist(), said.added, strict=False))
        checked = {row: parse_added(self.adds, text) for row, text in texts.items()}
        wrong = {row: found for row, found in checked.items() if isinstance(found, str)}
        return {row: text for row, text in texts.items() if row not in wrong}, {**said.faults, **wrong}


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
class Keeping:
    """A filter whose function could not be compiled.

    Attributes:
        function: Says of each alert whether it is kept.
        survey: Whose alerts.
        registry: Knows schemas.
    """

    function: Function
    survey: str
    registry: SchemaRegistry

    def run(self, events: Sequence[Event]) -> Outcome:
        """Return the alerts that are kept; those on which the function fails are faults."""
        outcome = Outcome()
        said = self.function.added(events, self.survey, self.registry, outcome.faults)
        outcome.passed[""] = [one for one, text in said if json.loads(text)[SAID.name]]
        return outcome


@dataclass(frozen=True)
class TransformRunner:
    """Leaves out fields, adds means and what a function computes.

    Attributes:
        transform: Which.
        survey: Whose alerts.
        topic: Under whose name the derived schemas are registered.
        writer: Writes the alerts.
        function: Computes; None where nothing is computed.
    """

    transform: Transform
    survey: str
    topic: str
    writer: TransformWriter
    function: Function | None = None

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
        return self.function.added(events, self.survey, self.writer.registry, outcome.faults)


class SplitRunner:
    """Passes on all that comes, for as many as want it."""

    def run(self, events: Sequence[Event]) -> Outcome:
        """Return *events*."""
        return Outcome({"": list(events)})
