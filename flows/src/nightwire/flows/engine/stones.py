"""What filters, routers and transforms do with events."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from nightwire.filters.delivery import TransformWriter
from nightwire.filters.language import Condition
from nightwire.filters.model import Transform
from nightwire.flows.engine.events import Event, Outcome
from nightwire.schemas import AlertDecoder, DecodeError, RegistryAwayError, SchemaError


@dataclass(frozen=True)
class Sorter:
    """A filter, or a router: sends each event out by the port whose condition it meets first.

    Attributes:
        conditions: By port.
        rest: The port of all others; None: they go no further.
        decoder: Reads alerts.
    """

    conditions: Mapping[str, Condition]
    rest: str | None
    decoder: AlertDecoder

    def run(self, events: Sequence[Event]) -> Outcome:
        """Return the events by port; what is no alert is a fault.

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
            outcome.passed[port] = [left[at] for at in sorted(said.passed)]
            left = [one for at, one in enumerate(left) if at not in said.passed and at not in said.errors]
        if self.rest is not None:
            outcome.passed[self.rest] = left
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
            else:
                outcome.passed[""].append(replace(one, value=value))
        return outcome


class SplitRunner:
    """Passes on all that comes, for as many as want it."""

    def run(self, events: Sequence[Event]) -> Outcome:
        """Return *events*."""
        return Outcome({"": list(events)})
