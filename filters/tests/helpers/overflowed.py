"""The passes that went to overflow."""

from collections.abc import Iterator

from nightwire.filters.decision.decision import Decision
from nightwire.filters.model.messages import Pass, PassedAlert


def overflowed(decision: Decision) -> Iterator[tuple[PassedAlert, Pass]]:
    """Yield each alert of a decision's overflow with its pass."""
    cut = decision.overflow
    for alert, number, rank in zip(cut.alert_index, cut.filter_index, cut.rank, strict=True):
        yield cut.alerts[alert], Pass(*cut.filters[number], rank)
