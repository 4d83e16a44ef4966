"""How soon a change is live: a filter is accepted while visits are judged; when is its first alert out?"""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from nightwire.benchmarks._scenario import Figures, Kind
from nightwire.benchmarks.filters._kinds import Kind as FilterKind
from nightwire.benchmarks.filters._mixture import Mixed
from nightwire.benchmarks.filters._moment import Moment
from nightwire.benchmarks.filters._visits import Ends, Setting
from nightwire.benchmarks.visit._services import ALERTS
from nightwire.core.kafka import ends_of

AHEAD = 1.0
"""From the first alert until the filter is accepted: batches are running by then. [s]"""
LONGEST = 60.0
"""Time for which visits follow each other, while the filter passes nothing. [s]"""
LOOK = 0.1
"""Time between two looks at the filter's topic. [s]"""
ALL = FilterKind("all", "def keep(alert):\n    return alert.id > LIMIT\n", "alert.id")


class Change(Moment):
    """A filter that passes all alerts goes live amid visits, and Kafka has it at that moment."""

    figure = "live_seconds"

    def __init__(self, it: Setting) -> None:
        super().__init__(it)
        self._fresh: list[Mixed] = []
        self._topic = ""

    def run_once(self, kind: Kind) -> Figures:
        """Return the time from when Kafka has the new filter until its first alert is read."""
        found = super().run_once(kind)
        self._it.services.live(self._it.filters())
        return found

    def _topics(self) -> Sequence[str]:
        name = f"all-{len(self._fresh)}"
        self._fresh.append(Mixed("fresh", name, ALL, ALL.source.replace("LIMIT", "0"), 1.0))
        (self._topic,) = self._it.services.make_topics(self._fresh[-1:]).values()
        return [self._topic]

    def _act(self) -> tuple[float, Ends]:
        with self._visits() as ends:
            time.sleep(AHEAD)
            self._it.services.live([*self._it.filters(), self._fresh[-1]])
            accepted = time.monotonic()
            self._await_first(accepted + LONGEST)
        return accepted, ends

    def _await_first(self, deadline: float) -> None:
        """Wait until the filter's topic has an alert."""
        while not ends_of(self._it.services.bootstrap, [self._topic]) and time.monotonic() < deadline:
            time.sleep(LOOK)

    @contextmanager
    def _visits(self) -> Iterator[Ends]:
        """Send one visit after the other meanwhile; at the end they are all in Kafka."""
        ends: Ends = {}
        enough = threading.Event()

        def send() -> None:
            while not enough.is_set():
                ends.update(self._it.visits.send(ALERTS, self._it.context.size.alerts)[1])

        sending = threading.Thread(target=send)
        sending.start()
        try:
            yield ends
        finally:
            enough.set()
            sending.join()
