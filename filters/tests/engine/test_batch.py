"""One batch: what is counted when it is run again, and what becomes of copies that a backfill sent.

librdkafka's mock cluster.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pytest
from prometheus_client import CollectorRegistry

from nightwire.core.accounting import discrepancies, read_accounts
from nightwire.core.kafka import Writer, headers_of, producer, read_to_end, watermarks
from nightwire.filters.decision.engine_state import EngineState, LocalCheckpoint
from nightwire.filters.engine.batch import BatchRunner
from nightwire.filters.engine.settings import EngineSettings
from nightwire.filters.evaluation.worker import make_task, run
from nightwire.filters.model import filter_set
from nightwire.filters.model.live_filter import LiveFilter
from nightwire.filters.model.messages import COLUMNS
from nightwire.filters.model.offsets import OffsetRange, to_offset
from nightwire.filters.reading.fetch import range_consumer
from nightwire.filters.stats.metrics import Metrics
from nightwire.schemas.topics import FILTERS, VISITS, filter_topic, overflow

BRIGHT = LiveFilter("me", "bright", 1, "sim", "def keep(alert):\n    return alert.flux > 50", "keep", cap=20)
NOWHERE = "http://127.0.0.1:9"


@dataclass
class Process:
    """What runs batches, from its start to its death."""

    settings: EngineSettings
    known: CollectorRegistry = field(default_factory=CollectorRegistry)

    def __post_init__(self) -> None:
        self.metrics = Metrics(self.known)
        self.batches = BatchRunner(self.settings, EngineState(self.settings.state), self.metrics)

    def run(self, number: int, work: OffsetRange) -> None:
        """Run a batch."""
        self.batches.run(number, lambda: self.rows(work))

    def rows(self, work: OffsetRange) -> pa.Table:
        """Return what a worker says."""
        task = make_task({**self.settings.options(), "sandbox": "none"}, (work,), 1, frozenset([work.topic]))
        return pa.Table.from_batches(run(task), COLUMNS)

    def counted(self) -> dict[str, float]:
        """Return all that Prometheus is told of filters, but for times.

        And what owners are told.
        """
        families = [one for one in self.known.collect() if one.type == "counter"]
        of = {s.name: s.value for one in families for s in one.samples if s.name.endswith("_total")}
        cost = "nightwire_filters_cpu_seconds_total"
        seen = ("evaluated", "passed", "sent", "capped")
        told = {name: record[name] for record in self.metrics.collector.changed_records(1) for name in seen}
        return {name: value for name, value in of.items() if name != cost} | told


@dataclass
class Night:
    """Alerts in Kafka, and two batches of them that are planned."""

    settings: EngineSettings
    work: list[OffsetRange]


@pytest.fixture
def night(bootstrap: str, tmp_path: Path, encode: Callable[..., bytes]) -> Night:
    """Return a night of a hundred alerts."""
    writer = Writer(producer(bootstrap))
    for topic in (FILTERS, VISITS, "accounts", filter_topic("me", "bright"), overflow("me", "bright")):
        writer.write(topic, None, key=b"none", partition=0)  # makes the topic
    writer.write("alerts.sim", b"x", partition=0)
    writer.flush()
    first = watermarks(range_consumer(bootstrap), "alerts.sim", 0)[1]
    for number in range(1, 101):
        writer.write("alerts.sim", encode(number, float(number)), partition=0)
    writer.flush()
    state, ends = EngineState(tmp_path), (first + 80, first + 100)
    state.keep_filters(1, filter_set.dump([BRIGHT]))
    for number, end in enumerate(ends):
        LocalCheckpoint(state).plan(number, to_offset({("alerts.sim", 0): end}, 1, at=5000))
    work = [OffsetRange("alerts.sim", 0, first, ends[0]), OffsetRange("alerts.sim", 0, *ends)]
    return Night(EngineSettings(bootstrap, NOWHERE, tmp_path), work)


def test_a_batch_that_is_run_again_counts_once(night: Night) -> None:
    first, second = night.work
    undisturbed = {
        "evaluated": 80, "passed": 30, "sent": 20, "capped": 10,
        "nightwire_filters_alerts_passed_total": 30, "nightwire_filters_alerts_capped_total": 10,
        "nightwire_filters_alerts_rejected_total": 50, "nightwire_filters_copies_acknowledged_total": 20,
        "nightwire_filters_records_judged_total": 80,
    }  # fmt: skip
    alive, dead = Process(night.settings), Process(night.settings)
    dead.run(0, first)  # … and dies before the batch is committed
    alive.run(0, first)
    assert dead.counted().items() >= undisturbed.items()
    assert not any(alive.counted().values())
    alive.run(1, second)
    alive.run(1, second)  # its query was started again
    counted = alive.counted()
    assert (counted["evaluated"], counted["passed"], counted["capped"]) == (20, 20, 20)
    assert counted["nightwire_filters_records_judged_total"] == 20
    assert dead.known.get_sample_value("nightwire_filters_batch_seconds_count") == 1
    # what ran, ran
    assert alive.known.get_sample_value("nightwire_filters_batch_seconds_count") == 3


RED = LiveFilter(
    "me",
    "red",
    1,
    "sim",
    "def keep(alert):\n    return alert.flux",
    "keep",
    cap=2,
    sources=("filter.ann.up",),
)


@pytest.mark.slow
@pytest.mark.parametrize("choice", ["first", "best"])
def test_along_a_chain_what_a_backfill_sent_stays_marked_and_takes_no_place(
    bootstrap: str, tmp_path: Path, encode: Callable[..., bytes], choice: str
) -> None:
    red = replace(RED, name=f"red-{choice}", choice=choice, sources=(f"filter.ann.{choice}",))
    (source,), topic = red.sources, filter_topic("me", red.name)
    writer = Writer(producer(bootstrap))
    for name in (FILTERS, VISITS, "accounts", topic, overflow("me", red.name)):
        writer.write(name, None, key=b"none", partition=0)  # makes the topic
    for number in range(1, 11):
        mark = [("backfill", b"yes")] if number % 2 else []
        headers = [("survey", b"sim"), *mark]
        writer.write(source, encode(number, float(number)), partition=0, headers=headers)
    writer.flush()
    state = EngineState(tmp_path)
    state.keep_filters(1, filter_set.dump([red]))
    LocalCheckpoint(state).plan(0, to_offset({(source, 0): 10}, 1, at=5000))
    Process(EngineSettings(bootstrap, NOWHERE, tmp_path)).run(0, OffsetRange(source, 0, 0, 10))
    copies = [headers_of(one) for one in read_to_end(bootstrap, [topic]) if one.value()]
    assert sorted(int(one["alert"]) for one in copies if one.get("backfill") == b"yes") == [1, 3, 5, 7, 9]
    live = sorted(int(one["alert"]) for one in copies if "backfill" not in one)
    assert live == ([2, 4] if choice == "first" else [])  # held, until the visit ends
    (account,) = (one for one in read_accounts(bootstrap) if one.source == source)
    assert (account.read, account.delivered, account.capped) == (10, 5 + len(live), 5 - len(live))
    assert discrepancies([account]) == []
