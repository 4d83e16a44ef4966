"""An hour in which Kafka restarts twice and the directory is killed: nobody is dead who lives.

``NIGHTWIRE_SOAK`` is how long [s]; a minute of it is `test_faults`.
"""

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from signal import SIGKILL

import pytest

from directory.tests.serve.served import Directory
from nightwire.core.stack import Broker
from tests._waiting import until

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.proof, pytest.mark.timeout(0)]

LENGTH = float(os.environ.get("NIGHTWIRE_SOAK", "3600"))
PROCESSES, EACH = 4, 25
AWAY = min(60.0, LENGTH / 20)
"""How long Kafka is away. [s]"""
LIVE = """
import sys, time
from contextlib import ExitStack
from nightwire.core.presence import registered
with ExitStack() as all_of_them:
    for name in sys.argv[2:]:
        all_of_them.enter_context(registered(sys.argv[1], name))
    time.sleep(1e6)
"""


@contextmanager
def living(bootstrap: str, names: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Yield a process that keeps *names* in the directory."""
    child = subprocess.Popen([sys.executable, "-c", LIVE, bootstrap, *names])
    try:
        yield child
    finally:
        child.kill()
        child.wait()


class Watch:
    """Counts the states of *names* that a directory tells; nobody of them may be gone."""

    def __init__(self, names: set[str]) -> None:
        self._names, self.states, self.silence = names, Counter[str](), 0.0

    def look(self, directory: Directory) -> Counter[str]:
        """Look once."""
        rows = directory.ask("SELECT name, state, silence FROM processes")
        found = {row["name"]: row for row in rows if row["name"] in self._names}
        assert found.keys() == self._names, "nobody is forgotten"
        seen = Counter(row["state"] for row in found.values())
        assert "gone" not in seen, f"{[name for name, row in found.items() if row['state'] == 'gone']}"
        self.silence = max(self.silence, *(row["silence"] for row in found.values()))
        self.states += seen
        return seen

    def for_(self, directory: Directory, seconds: float) -> None:
        """Look again and again."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.look(directory)
            time.sleep(0.25)

    def all_live(self, directory: Directory) -> bool:
        """Return whether all are live now."""
        return self.look(directory) == {"live": len(self._names)}


def test_nobody_who_lives_is_gone(
    fresh_broker: Broker, tmp_path: Path, record_testsuite_property: Callable[[str, object], None]
) -> None:
    names = [[f"lives-{number}-{each}" for each in range(EACH)] for number in range(PROCESSES)]
    watch = Watch({name for some in names for name in some})
    with ExitStack() as exits:
        directory = Directory.on(fresh_broker.bootstrap, tmp_path)
        children = [exits.enter_context(living(fresh_broker.bootstrap, some)) for some in names]
        counted = "SELECT count(*) AS n FROM processes WHERE name LIKE 'lives-%' AND state = 'live'"
        until(lambda: directory.ask(counted) == [{"n": PROCESSES * EACH}], "all are there")
        for _restart in range(2):
            watch.for_(directory, LENGTH / 4)
            fresh_broker.kill()
            watch.for_(directory, AWAY)
            fresh_broker.start()
            until(lambda: watch.all_live(directory), "all live again")
        watch.for_(directory, LENGTH / 4)
        directory.stop(SIGKILL)
        directory = Directory(fresh_broker.bootstrap, tmp_path)
        watch.for_(directory, LENGTH / 4)
        until(lambda: watch.all_live(directory), "all live at the end")
        record_testsuite_property("states", dict(watch.states))
        record_testsuite_property("longest_silence_s", watch.silence)
        children[0].kill()
        gone = counted.replace("'live'", "'gone'")
        until(lambda: directory.ask(gone) == [{"n": EACH}], "who is dead is gone")
        directory.stop()
