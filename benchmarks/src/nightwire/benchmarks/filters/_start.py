"""How soon the first alert is out after a crash: of the engine, its Java and its workers."""

import time

from nightwire.benchmarks._scenario import Figures, Kind, RunError
from nightwire.benchmarks._second import second_process
from nightwire.benchmarks.filters._visits import Setting
from nightwire.benchmarks.visit._services import ALERTS

MOST = 2_000
"""Alerts that wait in Kafka for the engine."""


class Start:
    """The engine was killed, alerts wait in Kafka, it is started again; there is no baseline.

    Args:
        it: What is measured.
    """

    def __init__(self, it: Setting) -> None:
        self._it, self.name = it, f"start-{it.count}-filters"

    def prepare(self) -> None:
        """Make the filters live."""
        self._it.services.live(self._it.filters())

    def run_once(self, kind: Kind) -> Figures:
        """Return the time from the start of the process until an owner has an alert."""
        return {"start_seconds": self._started()} if kind is Kind.SUBJECT else {}

    def tear_down(self) -> None:
        """Nothing to stop: the engine serves the next experiment too."""

    def _started(self) -> float:
        services = self._it.services
        services.kill()
        owned = list(services.filters.values())
        order = {"bootstrap": services.bootstrap, "topics": owned, "work": "bytes", "note": True}
        log = self._it.context.folder / "owners.log"
        with services.coverage() as coverage, second_process(self._it.context, order, log) as second:
            _, ends = self._it.visits.send_at_once(ALERTS, min(MOST, self._it.context.size.alerts))
            began = time.monotonic()
            services.engine()
            coverage.await_ends(ends)
            arrivals = second.findings()["arrivals"]
        services.forget(ends)
        if not arrivals:
            raise RunError("no alert passed any filter; take more alerts")
        return float(min(when for *_, when in arrivals)) - began
