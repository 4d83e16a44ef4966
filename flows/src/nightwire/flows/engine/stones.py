"""What filters, routers and transforms do with events."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from nightwire.filters.delivery import TransformWriter
from nightwire.filters.language import Condition, Oddities
from nightwire.filters.model import Transform
from nightwire.flows.engine.events import Event, Outcome
from nightwire.schemas import AlertDecoder, DecodeError, RegistryAwayError, SchemaError

log = logging.getLogger("nightwire.flows")


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
