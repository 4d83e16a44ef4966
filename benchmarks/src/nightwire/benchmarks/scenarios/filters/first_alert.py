"""How soon the first alert is out after a filter was accepted, and after the engine was killed."""

import threading
import time
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from nightwire.benchmarks import Experiment, Figures, Kind, RunError
from nightwire.benchmarks.environment.filter_engine import ALERTS
from nightwire.benchmarks.environment.filter_mixture import MixedFilter
from nightwire.benchmarks.scenarios.filters.visits import EndOffsets, FilterSetting, topics_of
from nightwire.benchmarks.workers.client import reader_process
from nightwire.core.kafka import end_offsets_at

AHEAD = 1.0
"""From the first alert until the filter is accepted: batches are running by then. [s]"""
LONGEST = 60.0
"""Time for which visits follow each other, while the filter passes nothing. [s]"""
POLL = 0.1
"""Time between two looks at the filter's topic. [s]"""
MOST = 2_000
"""Alerts that wait in Kafka for the engine."""


class FirstAlert(Experiment):
    """Something happens; how soon is the first alert out?  There is no baseline."""

    at_most: Mapping[Kind, int] = {Kind.BASELINE: 0}
    figure = ""
    """Name of the time. [s]"""

    def __init__(self, setting: FilterSetting) -> None:
        self._setting = setting
        self.name = f"{self.figure.removesuffix('_seconds')}-{setting.count}-{setting.what}"

    def prepare(self) -> None:
        """Make the filters live."""
        self._setting.engine.live(self._setting.filters)

    def run_once(self, kind: Kind) -> Figures:
        """Return the time from that moment until an owner has read an alert.

        Raises:
            RunError: Nobody was sent any.
        """
        engine, topics = self._setting.engine, self._topics()
        with (
            engine.coverage() as coverage,
            reader_process(self._setting.context, engine.bootstrap, topics, "bytes", note=True) as reader,
        ):
            began, ends = self._act()
            self._setting.await_lanes(coverage, ends)
            arrivals = reader.findings()["arrivals"]
        if not arrivals:
            raise RunError(f"{self.name}: no alert came")
        return {self.figure: float(min(when for *_, when in arrivals)) - began}

    @abstractmethod
    def _topics(self) -> Sequence[str]:
        """Return the topics that owners read; called before it happens."""

    @abstractmethod
    def _act(self) -> tuple[float, EndOffsets]:
        """Let it happen; return when [s], and the end of the visit that was sent meanwhile."""


class FilterChange(FirstAlert):
    """A filter that passes all alerts goes live amid visits, and Kafka has it at that moment."""

    figure = "live_seconds"

    def __init__(self, setting: FilterSetting) -> None:
        super().__init__(setting)
        self._fresh: list[MixedFilter] = []
        self._topic = ""

    def run_once(self, kind: Kind) -> Figures:
        """Return the time from when Kafka has the new filter until its first alert is read."""
        found = super().run_once(kind)
        self._setting.engine.live(self._setting.filters)
        return found

    def _topics(self) -> Sequence[str]:
        name = f"all-{len(self._fresh)}"
        self._fresh.append(MixedFilter.passing_all("fresh", name))
        (self._topic,) = self._setting.engine.make_topics(self._fresh[-1:]).values()
        return [self._topic]

    def _act(self) -> tuple[float, EndOffsets]:
        with self._visits() as ends:
            time.sleep(AHEAD)
            self._setting.engine.live([*self._setting.filters, self._fresh[-1]])
            accepted = time.monotonic()
            self._await_first(accepted + LONGEST)
        return accepted, ends

    def _await_first(self, deadline: float) -> None:
        """Wait until the filter's topic has an alert."""
        while (
            not end_offsets_at(self._setting.engine.bootstrap, [self._topic]) and time.monotonic() < deadline
        ):
            time.sleep(POLL)

    @contextmanager
    def _visits(self) -> Iterator[EndOffsets]:
        """Send one visit after the other meanwhile; at the end they are all in Kafka."""
        ends: EndOffsets = {}
        enough = threading.Event()

        def send() -> None:
            while not enough.is_set():
                ends.update(self._setting.visits.send(ALERTS, self._setting.context.size.alerts)[1])

        sending = threading.Thread(target=send)
        sending.start()
        try:
            yield ends
        finally:
            enough.set()
            sending.join()


class EngineStart(FirstAlert):
    """The engine was killed, alerts wait in Kafka, it is started again."""

    figure = "restart_seconds"

    def _topics(self) -> Sequence[str]:
        self._setting.engine.kill()
        return topics_of(self._setting.quick_ones)

    def _act(self) -> tuple[float, EndOffsets]:
        _, ends = self._setting.visits.send_at_once(ALERTS, min(MOST, self._setting.context.size.alerts))
        began = time.monotonic()
        self._setting.engine.start()
        return began, ends
