"""The process of the backfills: what it sends, and what it does again.

librdkafka's mock cluster.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from nightwire.core.accounting import discrepancies, read_accounts
from nightwire.core.kafka import Writer, headers_of, producer, read_to_end, watermarks
from nightwire.core.runtime import Stop
from nightwire.filters.admission.catalog import _record
from nightwire.filters.admission.trial import AdmissionPolicy
from nightwire.filters.decision.backfill_decision import BackfillJob, BackfillProgress
from nightwire.filters.decision.backfill_jobs import BackfillJobs
from nightwire.filters.engine.backfill_runner import BackfillRunner
from nightwire.filters.engine.settings import EngineSettings
from nightwire.filters.model.compilation import compile_request
from nightwire.filters.reading.fetch import range_consumer
from nightwire.schemas import records

pytestmark = pytest.mark.slow

ALERTS, MOST = 1200, 30
"""Alerts of the past, and most that are sent; one in ten passes."""


class Past:
    """Alerts, a filter that is live behind them, and its backfill."""

    def __init__(
        self, bootstrap: str, folder: Path, encode: Callable[..., bytes], source: str = "alerts.sim"
    ) -> None:
        self.bootstrap, self.folder, self.name = bootstrap, folder, f"p{uuid4().hex[:8]}"
        self.source = source
        self.topics = {kind: f"{kind}.ann.{self.name}" for kind in ("filter", "overflow")}
        writer = Writer(producer(bootstrap))
        for topic in (*self.topics.values(), "answers.ann", "filters", "accounts"):
            writer.write(topic, None, key=b"ann/none", partition=0)  # makes the topic
        writer.write(source, b"x", partition=0)
        writer.flush()
        first = watermarks(range_consumer(bootstrap), source, 0)[1]
        for number in range(1, ALERTS + 1):
            writer.write(source, encode(number), partition=0, headers=self.headers(number))
        writer.flush()
        partition = (source, 0)
        self.job = BackfillJob("ann", self.name, 1, since=0, until={partition: first + ALERTS})
        self.jobs = BackfillJobs(folder)
        self.jobs.ask(self.job)
        self.jobs.keep_progress(self.job, BackfillProgress(at={partition: first}, whole=ALERTS))
        self.make_live(live=True)

    def headers(self, number: int) -> list[tuple[str, bytes]]:
        """Return the headers of an alert: what another filter passed was sent live, or by its
        backfill.
        """
        if self.source == "alerts.sim":
            return []
        origin = {"survey": "sim", "topic": "alerts.sim", "partition": 3, "offset": 10 * number}
        mark = {"backfill": "yes"} if number % 20 else {}
        return [(name, str(value).encode()) for name, value in {**origin, **mark}.items()]

    def make_live(self, *, live: bool, name: str = "") -> None:
        """Make the filter live, or end it, as the catalog does.

        Here `filters` has several partitions.
        """
        request = {
            "id": "1", "action": "submit", "owner": "ann", "name": name or self.name, "survey": "sim",
            "time": 1, "source": "def keep(alert):\n    return alert.id % 10 == 0", "entry": "keep",
            "sources": [] if self.source == "alerts.sim" else [self.source],
        }  # fmt: skip
        known = records.REQUEST.decode(records.REQUEST.encode(request))
        record = records.FILTER.encode({**_record(known, compile_request(known), 1), "live": live})
        writer = Writer(producer(self.bootstrap))
        for key in (f"ann/{name or self.name}/1", f"ann/{name or self.name}"):
            writer.write("filters", record, key=key.encode(), partition=0)
        writer.flush()

    def process(self) -> BackfillRunner:
        """Return a new process's."""
        settings = EngineSettings(
            self.bootstrap, "http://127.0.0.1:9", self.folder, trial=AdmissionPolicy(backfill=MOST)
        )
        return BackfillRunner(settings, Stop(), share=1.0)

    def sent(self) -> list[tuple[int, bytes]]:
        """Return number and mark of each copy in the filter's topic, by number."""
        found = [
            headers_of(one) for one in read_to_end(self.bootstrap, [self.topics["filter"]]) if one.value()
        ]
        return sorted((int(one["alert"]), one["backfill"]) for one in found)

    def notices(self, name: str = "") -> list[str]:
        """Return the notices to its owner about a filter, its own where none is named."""
        answers = (one.value() for one in read_to_end(self.bootstrap, ["answers.ann"]))
        found = [records.ANSWER.decode(value) for value in answers if value is not None]
        return [text for one in found if one["name"] == (name or self.name) for text in one["reasons"]]


@pytest.fixture
def past(bootstrap: str, tmp_path: Path, encode: Callable[..., bytes]) -> Past:
    """Return a backfill that has begun."""
    return Past(bootstrap, tmp_path, encode)


def test_it_sends_what_passes_marked_up_to_the_limit_and_the_rest_is_overflow(past: Past) -> None:
    process = past.process()
    while process.round():
        pass
    assert past.sent() == [(number, b"yes") for number in range(10, 10 * MOST + 1, 10)]
    cut: list[Any] = [one.value() for one in read_to_end(past.bootstrap, [past.topics["overflow"]])]
    numbers = [int(records.OVERFLOW.decode(value)["alert"]) for value in cut if value is not None]
    assert sorted(numbers) == list(range(10 * MOST + 10, ALERTS + 1, 10))
    assert past.notices()[-1] == "backfill ended: 1,200 alerts judged, 120 passed, 30 sent, 90 to overflow"
    assert past.jobs.due() == []


def test_the_past_of_a_chained_filter_is_what_passed_the_one_before_it_however_it_came(
    bootstrap: str, tmp_path: Path, encode: Callable[..., bytes]
) -> None:
    past = Past(bootstrap, tmp_path, encode, f"filter.bob.u{uuid4().hex[:8]}")
    process = past.process()
    while process.round():
        pass
    assert past.sent() == [(number, b"yes") for number in range(10, 10 * MOST + 1, 10)]
    copies = [headers_of(one) for one in read_to_end(bootstrap, [past.topics["filter"]]) if one.value()]
    assert {(one["topic"], one["partition"], one["via"]) for one in copies} == {
        (b"alerts.sim", b"3", past.source.encode())
    }
    assert {int(one["offset"]) - 10 * int(one["alert"]) for one in copies} == {0}
    assert past.notices()[-1] == "backfill ended: 1,200 alerts judged, 120 passed, 30 sent, 90 to overflow"
    own = [one for one in read_accounts(bootstrap) if one.source == f"backfill/{past.job.id}/{past.source}"]
    assert (sum(one.read for one in own), sum(one.delivered for one in own)) == (ALERTS, MOST)
    assert discrepancies(own) == []


def test_a_process_that_dies_before_it_notes_a_batch_sends_the_same_again(past: Past) -> None:
    begun = past.jobs.progress(past.job)
    assert begun is not None
    past.process().round()
    once = past.sent()
    past.jobs.keep_progress(past.job, begun)
    process = past.process()
    while process.round():
        pass
    assert past.sent() == sorted(once * 2)
    assert "1,200 alerts judged, 120 passed, 30 sent" in past.notices()[-1]


def test_backfills_that_fail_cost_their_own_turn_alone(past: Past) -> None:
    """Of three Kafka has no such partition; the fourth begins in a year that no calendar has."""
    nowhere = {("alerts.sim", 999): 10}
    wrong = [replace(past.job, name=f"{past.name}-{number}", until=nowhere) for number in range(3)]
    wrong.append(replace(past.job, name=f"{past.name}-far", since=2**62))
    for job in wrong:
        past.make_live(live=True, name=job.name)
        past.jobs.ask(job)
    process = past.process()
    for _ in range(6):
        process.round()
    assert past.notices()[-1] == "backfill ended: 1,200 alerts judged, 120 passed, 30 sent, 90 to overflow"
    assert past.notices(f"{past.name}-far")[-1].startswith("backfill stopped, it failed: ValueError: year")
    assert past.jobs.due() == wrong[:3]
    waits = "backfill waits, and is tried again: KafkaException"
    assert [past.notices(job.name)[-1].startswith(waits) for job in wrong[:3]] == [True] * 3


def test_it_ends_when_its_version_is_not_live_any_more(past: Past) -> None:
    past.process().round()
    past.make_live(live=False)
    while past.process().round():
        pass
    assert "backfill stopped, version 1 is not live: 500 alerts judged" in past.notices()[-1]


def test_it_ends_as_its_owner_asks_and_the_filter_stays_live(past: Past) -> None:
    process = past.process()
    assert process.round()
    assert past.jobs.stop("bob", past.name) == past.jobs.stop("ann", "another") == 0
    assert past.jobs.stop("ann", past.name) == 1
    assert process.round()
    assert past.notices()[-1].startswith("backfill stopped, as its owner asked: 500 alerts judged")
    assert past.jobs.due() == []
    assert past.jobs.stop("ann", past.name) == 0
