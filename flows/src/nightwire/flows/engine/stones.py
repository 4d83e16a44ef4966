"""What filters, routers and transforms do with events."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nightwire.core.kafka import MAX_MESSAGE
from nightwire.filters.delivery import TransformWriter
from nightwire.filters.language import Condition, Judgement
from nightwire.filters.model import Transform
from nightwire.flows.engine.events import Event, Outcome, changed
from nightwire.flows.model import ELSE
from nightwire.schemas import AlertDecoder, DecodeError, RegistryAwayError, SchemaError

LARGEST = MAX_MESSAGE - (64 << 10)
"""Longest value that is written, so that headers fit. [byte]"""


def judged(condition: Condition, events: Sequence[Event], decoder: AlertDecoder) -> Judgement:
    """Return what *condition* says of *events*.

    Raises:
        RegistryAwayError: Ask again later.
    """
    said = condition.judge([one.value for one in events], decoder)
    for error in said.errors.values():
        if isinstance(error, RegistryAwayError):
            raise error
    return said


@dataclass(frozen=True)
class FilterRunner:
    """Lets through what meets a condition."""

    condition: Condition
    decoder: AlertDecoder

    def run(self, events: Sequence[Event]) -> Outcome:
        """Return what passed; what is no alert is a fault, what cannot be judged does not pass."""
        said = judged(self.condition, events, self.decoder)
        passed = [events[at] for at in sorted(said.passed)]
        return Outcome({"": passed}, [(events[at], str(why)) for at, why in said.errors.items()])


@dataclass(frozen=True)
class RouterRunner:
    """Sends each event out by the port whose condition it meets first."""

    conditions: Mapping[str, Condition]
    decoder: AlertDecoder

    def run(self, events: Sequence[Event]) -> Outcome:
        """Return the events by port; what is no alert is a fault."""
        left, outcome = list(events), Outcome()
        for port, condition in self.conditions.items():
            said = judged(condition, left, self.decoder)
            outcome.passed[port] = [left[at] for at in sorted(said.passed)]
            outcome.faults += [(left[at], str(why)) for at, why in said.errors.items()]
            left = [one for at, one in enumerate(left) if at not in said.passed and at not in said.errors]
        outcome.passed[ELSE] = left
        return outcome


@dataclass(frozen=True)
class TransformRunner:
    """Leaves out fields and adds means.

    Attributes:
        transform: Which.
        survey: Whose alerts.
        topic: Under whose name the derived schemas are registered.
        writer: Writes the alerts.
    """

    transform: Transform
    survey: str
    topic: str
    writer: TransformWriter

    def run(self, events: Sequence[Event]) -> Outcome:
        """Return the alerts in their new form."""
        outcome = Outcome({"": []})
        for one in events:
            try:
                value = self.writer.value(one.origin, one.value, self.topic, self.survey, self.transform, "")
            except RegistryAwayError:
                raise
            except (DecodeError, SchemaError) as error:
                outcome.faults.append((one, str(error)))
                continue
            if len(value) > LARGEST:
                outcome.faults.append((one, f"{len(value)} bytes after the transform are too many"))
            else:
                outcome.passed[""].append(changed(one, value))
        return outcome


class SplitRunner:
    """Passes on all that comes, for as many as want it."""

    def run(self, events: Sequence[Event]) -> Outcome:
        """Return *events*."""
        return Outcome({"": list(events)})
