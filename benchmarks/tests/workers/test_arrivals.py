"""A reader's file of what came."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from nightwire.benchmarks.workers.arrivals import read_arrivals


def test_arrivals_outlive_whoever_wrote_them(tmp_path: Path) -> None:
    """A process that is killed with -9 right after it noted an arrival has written it."""
    code = (
        "import sys; from pathlib import Path\n"
        "from nightwire.benchmarks.workers.arrivals import ArrivalLog\n"
        "log = ArrivalLog(Path(sys.argv[1])); log.note('a'); log.note('b'); print('x', flush=True)\n"
        "sys.stdin.read()"
    )
    path = tmp_path / "arrivals"
    for _ in range(2):
        child = subprocess.Popen(
            [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        with child:
            assert child.stdout is not None
            child.stdout.readline()
            os.kill(child.pid, signal.SIGKILL)
    with path.open("a") as torn:
        torn.write("12.")
    assert [name for name, _ in read_arrivals(path)] == ["a", "b", "a", "b"]
    assert all(0 < moment <= time.monotonic() for _, moment in read_arrivals(path))
    assert read_arrivals(tmp_path / "none") == []
