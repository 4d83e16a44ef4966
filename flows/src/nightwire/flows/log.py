"""The topic `flows`, followed in a thread."""

import logging
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache

from nightwire.core.kafka import TableFollower
from nightwire.core.subscriptions import MOST_NAMES, Flows, FlowTable
from nightwire.core.subscriptions import FlowRecord as FlowRecord
from nightwire.core.subscriptions import read_flows as read_flows
from nightwire.core.subscriptions import write_flow as write_flow
from nightwire.flows.model import Flow, FlowError, parse
from nightwire.schemas.topics import FLOWS

log = logging.getLogger("nightwire.flows")


class FlowFollower(TableFollower[FlowTable]):
    """Follows which flows there are in the Kafka at *bootstrap*, within a ``with`` block."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap, FLOWS, FlowTable, poll=0.05)

    def flows(self) -> Flows:
        """Return the flows by name, each with the offset of its record: its version."""
        with self._changed:
            return dict(self._table.held)

    def await_change(self, timeout: float) -> None:
        """Wait at most *timeout* [s] for something new in the log."""
        with self._changed:
            self._changed.wait(timeout)


def readable(found: Iterable[FlowRecord]) -> Iterator[Flow]:
    """Yield the flows in the records *found* that hold one, and run."""
    for one in found:
        with suppress(FlowError):
            if not one.paused:
                yield parsed(one.text)


def parsed(text: str) -> Flow:
    """Return the flow in *text*, which is parsed once: all are looked at whenever one changes.

    Raises:
        FlowError: There is none.
    """
    found = _outcome(text)
    if isinstance(found, FlowError):
        raise FlowError(found.reasons)  # one that is raised again and again keeps all its tracebacks
    return found


@lru_cache(MOST_NAMES)
def _outcome(text: str) -> Flow | FlowError:
    try:
        return parse(text)
    except FlowError as error:
        return FlowError(error.reasons)
    except Exception as error:
        log.exception("the text of a flow")
        return FlowError([f"no flow: {type(error).__name__}"])  # it stops no other
