"""The engine's thread that has a process do backfills, as long as there are any."""

import logging
import threading
from multiprocessing import get_context

from nightwire.core.process import Stop
from nightwire.filters._backfill_jobs import Jobs
from nightwire.filters._backfiller import serve
from nightwire.filters._settings import Settings

log = logging.getLogger("nightwire.filters")

LOOK = 1.0
"""Pause between looks for backfills. [s]"""

RETRY = 5.0
"""Pause after a process that failed. [s]"""

PATIENCE = 10.0
"""Longest wait for the process to finish its batch. [s]"""


class BackfillKeeper:
    """Starts a process where there are backfills, and again where one dies.

    Args:
        settings: The engine's.
        stop: When to leave.
    """

    def __init__(self, settings: Settings, stop: Stop) -> None:
        self._settings, self._stop = settings, stop

    def start(self) -> threading.Thread:
        """Look for backfills in a thread of its own."""
        thread = threading.Thread(target=self._keep, name="backfills", daemon=True)
        thread.start()
        return thread

    def _keep(self) -> None:
        jobs = Jobs(self._settings.state)
        while not self._stop.wait(LOOK):
            if jobs.due() and (status := self._run()):
                log.warning("the process of the backfills ended with status %d; starting it again", status)
                self._stop.wait(RETRY)

    def _run(self) -> int | None:
        """Run a process to its end, or until we are stopped; return its exit status."""
        process = get_context("spawn").Process(target=serve, args=(self._settings,), daemon=True)
        process.start()
        while process.is_alive() and not self._stop.is_set():
            process.join(0.2)
        if process.is_alive():
            process.terminate()
            process.join(PATIENCE)
        return None if self._stop.is_set() else process.exitcode
