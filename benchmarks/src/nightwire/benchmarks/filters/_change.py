"""How soon a change is live: a filter is accepted while a visit is judged; when is its first alert out?"""

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

AHEAD = 1.0
"""From the first alert until the filter is accepted: batches are running by then. [s]"""
ALL = FilterKind("all", "def keep(alert):\n    return alert.id > LIMIT\n", "alert.id")


class Change(Moment):
    """A filter that passes all alerts goes live in the midst of a visit, and Kafka has it at that moment."""

    figure = "live_seconds"

    def __init__(self, it: Setting) -> None:
        super().__init__(it)
        self._fresh: list[Mixed] = []

    def run_once(self, kind: Kind) -> Figures:
        """Return the time from when Kafka has the new filter until its first alert is read."""
        found = super().run_once(kind)
        self._it.services.live(self._it.filters())
        return found

    def _topics(self) -> Sequence[str]:
        name = f"all-{len(self._fresh)}"
        self._fresh.append(Mixed("fresh", name, ALL, ALL.source.replace("LIMIT", "0"), 1.0))
        return list(self._it.services.make_topics(self._fresh[-1:]).values())

    def _act(self) -> tuple[float, Ends]:
        with self._visit() as ends:
            time.sleep(AHEAD)
            self._it.services.live([*self._it.filters(), self._fresh[-1]])
            accepted = time.monotonic()
        return accepted, ends

    @contextmanager
    def _visit(self) -> Iterator[Ends]:
        """Send a visit meanwhile; at the end it is all in Kafka."""
        ends: Ends = {}

        def send() -> None:
            ends.update(self._it.visits.send(ALERTS, self._it.context.size.alerts)[1])

        sending = threading.Thread(target=send)
        sending.start()
        try:
            yield ends
        finally:
            sending.join()
