"""How soon a change is live: a filter is accepted while a visit is judged; when is its first alert out?"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from nightwire.benchmarks._scenario import Figures, Kind, RunError
from nightwire.benchmarks._second import second_process
from nightwire.benchmarks.filters._kinds import Kind as FilterKind
from nightwire.benchmarks.filters._mixture import Mixed
from nightwire.benchmarks.filters._visits import Setting
from nightwire.benchmarks.visit._services import ALERTS

AHEAD = 1.0
"""From the first alert until the filter is accepted: batches are running by then. [s]"""
ALL = FilterKind("all", "def keep(alert):\n    return alert.id > LIMIT\n", "alert.id")


class Change:
    """A filter that passes all alerts goes live in the midst of a visit; there is no baseline.

    Args:
        it: What is measured.
    """

    def __init__(self, it: Setting) -> None:
        self._it, self.name, self._turn = it, f"change-{it.count}-filters", 0

    def prepare(self) -> None:
        """Make the filters live."""
        self._it.services.live(self._it.filters())

    def run_once(self, kind: Kind) -> Figures:
        """Return the time from when Kafka has the new filter until its first alert is read."""
        return {"live_seconds": self._changed()} if kind is Kind.SUBJECT else {}

    def tear_down(self) -> None:
        """Nothing to stop: the engine serves the next experiment too."""

    def _changed(self) -> float:
        services, self._turn = self._it.services, self._turn + 1
        fresh = Mixed("fresh", f"all-{self._turn}", ALL, ALL.source.replace("LIMIT", "0"), 1.0)
        topic = services.make_topics([fresh])[fresh.key]
        order = {"bootstrap": services.bootstrap, "topics": [topic], "work": "bytes", "note": True}
        log = self._it.context.folder / "change.log"
        with services.coverage() as coverage, second_process(self._it.context, order, log) as second:
            with self._visit() as ends:
                time.sleep(AHEAD)
                services.live([*self._it.filters(), fresh])
                accepted = time.monotonic()
            coverage.await_ends(ends)
            arrivals = second.findings()["arrivals"]
        services.forget(ends)
        services.live(self._it.filters())
        if not arrivals:
            raise RunError("the visit was over before the filter was live; take more alerts")
        return float(min(when for *_, when in arrivals)) - accepted

    @contextmanager
    def _visit(self) -> Iterator[dict[int, int]]:
        """Send a visit meanwhile; at the end it is all in Kafka."""
        ends: dict[int, int] = {}

        def send() -> None:
            ends.update(self._it.visits.send(ALERTS, self._it.context.size.alerts)[1])

        sending = threading.Thread(target=send)
        sending.start()
        try:
            yield ends
        finally:
            sending.join()
