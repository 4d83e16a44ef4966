"""From when an alert is due to when it is read, at a steady rate, open loop."""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack

from confluent_kafka import Producer

from nightwire.benchmarks import Context, Experiment, Figures, Kind
from nightwire.benchmarks.environment.alert_pool import Alert, ReadyMessage, patch
from nightwire.benchmarks.environment.filter_engine import ALERTS, FilterEngine
from nightwire.benchmarks.workers.alerts.due_times import (
    LEAD,
    DueTimes,
    check_complete,
    paced,
    percentiles,
)
from nightwire.benchmarks.workers.alerts.feed import RawProducer, alert_writer, cycled
from nightwire.benchmarks.workers.client import WorkerClient, reader_process

LONGEST = 20.0
"""Longest time of one run; at that rate more alerts tell little more. [s]"""
VISIT = 2.0
"""Length of a visit: short, so that filters' caps per visit leave enough alerts to measure. [s]"""
FIRST_VISIT = 2026_0103_00000


class Latency(Experiment):
    """Alerts at a steady rate → a plain consumer and filters' topics; against ready-made bytes.

    Args:
        context: Says how much.
        engine: Kafka and the engine.
        pool: Alerts to begin with.
        ready: Messages for the baseline.
        plain: Whether a plain consumer reads all alerts, beside those of the filters' topics.
        visit: Length of a visit; each run begins one. [s]
    """

    name = "latency"

    def __init__(
        self,
        context: Context,
        engine: FilterEngine,
        pool: list[Alert],
        ready: list[ReadyMessage],
        *,
        plain: bool = True,
        visit: float = VISIT,
    ) -> None:
        self._context, self._engine = context, engine
        self._pool, self._ready, self._plain = pool, ready, plain
        self._visit, self._visits, self._sent = visit, 0, 0
        self.delays: dict[str, list[float]] = {}
        self.behind = 0.0

    @property
    def count(self) -> int:
        """Alerts in one run."""
        size = self._context.size
        return min(size.alerts, int(LONGEST * size.rate))

    def prepare(self) -> None:
        """Start the engine where it is wanted, and let one second of alerts through, both ways."""
        if self._context.engine != "none":
            self._engine.start()
        count = min(self.count, int(self._context.size.rate))
        self._through_ours(count)
        self._through_raw(count)
        self.delays.clear()
        self.behind = 0.0

    def run_once(self, kind: Kind) -> Figures:
        """Send at the steady rate, and return percentiles of the delays. [ms]"""
        return (self._through_ours if kind is Kind.SUBJECT else self._through_raw)(self.count)

    def _through_ours(self, count: int) -> Figures:
        filters = self._owned()
        with ExitStack() as exits:
            topic = ALERTS if filters else exits.enter_context(self._engine.topic("steady"))
            coverage = exits.enter_context(self._engine.coverage()) if filters else None
            reader = exits.enter_context(self._reader([*([topic] if self._plain else []), *filters]))
            dues = self._send(topic, count)
            if coverage is not None:
                coverage.await_ends(dues.ends(), self._engine.slow_owners)
            arrivals = reader.findings()["arrivals"]
        self._sent += count
        ours, passed = dues.delays(arrivals, topic), dues.delays(arrivals, *self._at_once(filters))
        if self._plain:
            check_complete(len(ours), count)
        self._keep("nightwire: due → consumer", ours)
        self._keep("nightwire: due → filter topic", passed)
        self._keep("nightwire: due → acknowledged", dues.publishing)
        self.behind = max(self.behind, dues.behind)
        figures = percentiles("latency", ours) | percentiles("publish_latency", dues.publishing)
        figures |= percentiles("filter_latency", passed)
        return figures | {"generator_behind_ms": dues.behind * 1e3}

    def _at_once(self, topics: list[str]) -> list[str]:
        """Return those of *topics* whose filters are judged at once, in the quick lane."""
        slow = {
            self._engine.filters[key] for key in self._engine.slow_filters() & self._engine.filters.keys()
        }
        return [one for one in topics if one not in slow]

    def _owned(self) -> list[str]:
        """Return the filters' topics that are read."""
        return list(self._engine.filters.values())

    def _send(self, topic: str, count: int) -> DueTimes:
        """Send alerts when they are due; return when that was, after all acknowledgements."""
        writer, _codec, client = alert_writer(self._engine.bootstrap, topic)
        dues, visit = DueTimes(), FIRST_VISIT + self._visits
        for turn, (due, late) in enumerate(self._steady(count, client)):
            dues.behind = max(dues.behind, late)
            number, visit = self._sent + turn, FIRST_VISIT + self._visits + self._visit_of(turn)
            alert = patch(self._pool[number % len(self._pool)], number, visit)
            writer.write(alert, visit=visit, on_delivered=dues.of(due))
        writer.flush()
        self._visits = visit + 1 - FIRST_VISIT
        return dues

    def _visit_of(self, turn: int) -> int:
        """Return the visit, of those of a run, to which its alert number *turn* belongs."""
        return int(turn / (self._context.size.rate * self._visit))

    def _through_raw(self, count: int) -> Figures:
        messages = cycled(self._ready, count, self._sent)
        with self._engine.topic("raw") as topic, self._reader([topic]) as reader:
            raw, dues = RawProducer(self._engine.bootstrap, topic), DueTimes()
            for message, (due, _late) in zip(messages, self._steady(count, raw.client), strict=True):
                raw.send(message, dues.of(due))
            raw.flush()
            delays = dues.delays(reader.findings()["arrivals"], topic)
        check_complete(len(delays), count)
        self._keep("raw librdkafka: due → consumer", delays)
        figures = percentiles("latency", delays) | percentiles("publish_latency", dues.publishing)
        return figures | percentiles("filter_latency", delays)

    def _steady(self, count: int, client: Producer) -> Iterator[tuple[float, float]]:
        start, rate = time.monotonic() + LEAD, self._context.size.rate
        return paced((start + number / rate for number in range(count)), client)

    def _reader(self, topics: list[str]) -> AbstractContextManager[WorkerClient]:
        return reader_process(self._context, self._engine.bootstrap, topics, "bytes", note=True)

    def _keep(self, name: str, delays: list[float]) -> None:
        if delays:
            self.delays.setdefault(name, []).extend(delays)
