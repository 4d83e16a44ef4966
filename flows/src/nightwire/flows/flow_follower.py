"""A follower of the topic `flows`, and the flows in its records."""

import logging
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache

from nightwire.core.kafka import TableFollower
from nightwire.core.subscriptions import MOST_NAMES, FlowRecord, Flows, FlowTable
from nightwire.flows.model import Flow, FlowError, parse
from nightwire.schemas.topics import FLOWS

log = logging.getLogger("nightwire.flows")


class FlowFollower(TableFollower[FlowTable]):
    """Follows `flows` in the Kafka at *bootstrap*, within a ``with`` block."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap, FLOWS, FlowTable, poll=0.05)

    def flows(self) -> Flows:
        """Return the flows by name, each with the offset of its record: its version."""
        with self._changed:
            return dict(self._table.held)

    def await_change(self, timeout: float) -> None:
        """Wait at most *timeout* [s] for a new record."""
        with self._changed:
            self._changed.wait(timeout)


def running_flows(records: Iterable[FlowRecord]) -> Iterator[Flow]:
    """Yield the flows in *records* that are not paused; records that hold no flow are left out."""
    for one in records:
        with suppress(FlowError):
            if not one.paused:
                yield parse_cached(one.text)


def parse_cached(text: str) -> Flow:
    """Return the flow in *text*, parsed once: whenever one changes, all are looked at.

    Raises:
        FlowError: *text* is no flow.
    """
    found = _parse_or_error(text)
    if isinstance(found, FlowError):
        raise FlowError(found.reasons)  # one that is raised again and again keeps all its tracebacks
    return found


@lru_cache(MOST_NAMES)
def _parse_or_error(text: str) -> Flow | FlowError:
    try:
        return parse(text)
    except FlowError as error:
        return FlowError(error.reasons)
    except Exception as error:
        log.exception("the text of a flow")
        return FlowError([f"no flow: {type(error).__name__}"])  # it stops no other
