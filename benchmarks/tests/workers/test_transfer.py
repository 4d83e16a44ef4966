"""Transfers of a visit: the shares of senders, and the result."""

from typing import Any

import pytest

from nightwire.benchmarks import RunError
from nightwire.benchmarks.workers.alerts.sender import Load, Sent
from nightwire.benchmarks.workers.alerts.transfer import (
    BYTES,
    DICTS,
    LATEST,
    Transfer,
    transfer_result,
)


def said(records: int = 10, *, left: int = 0, last: float = 14.0) -> dict[str, Any]:
    """Return what a consumer says."""
    return {"records": records, "left": left, "last": last, "cpu": 0.5, "size": 1000}


@pytest.mark.parametrize(("alerts", "producers"), [(10, 1), (10, 3), (2, 4), (100_000, 8)])
def test_producers_share_the_alerts_of_a_visit_without_gap_or_overlap(alerts: int, producers: int) -> None:
    loads = Transfer(Load(alerts, first=7), producers=producers).loads
    sent = [number for load in loads for number in range(load.first, load.first + load.alerts)]
    assert sent == list(range(7, 7 + alerts))
    assert len(loads) == min(alerts, producers)
    assert max(load.alerts for load in loads) - min(load.alerts for load in loads) <= 1


def test_the_clock_runs_from_the_first_of_all_senders_to_the_last_of_all_who_read() -> None:
    move = Transfer(Load(10), producers=2, consumers=(DICTS, LATEST, DICTS))
    sent = [Sent(10.0, 12.0, 13.0), Sent(9.0, 12.5, 12.9)]
    played = transfer_result(move, sent, [said(), said(last=99.0), said(last=15.0)], stored=5, memory=6)
    assert (played.seconds, played.sending, played.transit) == (6.0, 4.0, 2.5)
    assert (played.readers, played.reading_cpu, played.size) == (2, 0.5, 1000)
    assert (played.stored, played.memory) == (5, 6)


@pytest.mark.parametrize("bad", [said(9), said(11), said(10, left=1)])
@pytest.mark.parametrize("kind", [DICTS, LATEST])
def test_a_consumer_that_saw_other_than_what_was_sent_fails_the_run(bad: dict[str, Any], kind: str) -> None:
    move = Transfer(Load(10), consumers=(BYTES, kind))
    with pytest.raises(RunError, match=rf"consumer 2 \({kind}\) saw \d+ of 10 alerts"):
        transfer_result(move, [Sent(1.0, 2.0, 3.0)], [said(), bad])
