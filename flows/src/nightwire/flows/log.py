"""The topic `flows`, followed in a thread."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache

from nightwire.core.kafka import TableFollower
from nightwire.core.subscriptions import FlowRecord as FlowRecord
from nightwire.core.subscriptions import Flows, FlowTable
from nightwire.core.subscriptions import read_flows as read_flows
from nightwire.core.subscriptions import write_flow as write_flow
from nightwire.flows.model import Flow, FlowError, parse
from nightwire.schemas.topics import FLOWS

MOST = 1000
"""Most flows that are kept parsed."""


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
                yield _parsed(one.text)


_parsed = lru_cache(MOST)(parse)
"""All flows are looked at whenever one changes."""
