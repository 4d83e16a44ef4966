"""Child processes."""

import sys
from pathlib import Path

import psutil
import pytest

from nightwire.benchmarks.environment.processes import Child, ChildError


def test_a_child_that_fails_says_how(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "raise SystemExit('no luck')"]
    with Child(command, tmp_path / "log") as child, pytest.raises(ChildError, match="no luck"):
        child.await_health(1)


@pytest.mark.slow
def test_a_child_and_its_children_are_ended(tmp_path: Path) -> None:
    code = "import subprocess,sys; p=subprocess.Popen(['sleep','600']); print(p.pid, flush=True); p.wait()"
    with Child([sys.executable, "-c", code], tmp_path / "log", talks=True) as child:
        assert child.process.stdout is not None
        grandchild = int(child.process.stdout.readline())
    assert child.process.poll() is not None
    psutil.wait_procs([psutil.Process(grandchild)] if psutil.pid_exists(grandchild) else [], timeout=10)
    gone = not psutil.pid_exists(grandchild) or psutil.Process(grandchild).status() == psutil.STATUS_ZOMBIE
    assert gone
