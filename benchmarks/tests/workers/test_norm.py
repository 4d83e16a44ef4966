"""Records by NORM on the loopback: a sender and a receiver, each a process."""

import json
from contextlib import ExitStack
from pathlib import Path

import pytest

from nightwire.benchmarks.environment.processes import Child, python
from nightwire.benchmarks.workers import norm
from nightwire.benchmarks.workers.client import WorkerClient
from nightwire.core.runtime import free_port

pytestmark = [pytest.mark.norm, pytest.mark.slow, pytest.mark.timeout(120)]


def test_what_is_sent_comes(tmp_path: Path) -> None:
    order = {"group": f"239.255.7.251:{free_port()}", "interface": "lo", "count": 200, "size": 1_000,
             "rate": 500.0, "patience": 20.0}  # fmt: skip
    with ExitStack() as exits:
        workers = {}
        for part in ("receive", "send"):
            command = python(norm.__name__, json.dumps({**order, "part": part}))
            child = exits.enter_context(Child(command, tmp_path / part, talks=True))
            workers[part] = WorkerClient(child)
            workers[part].await_ready()
        found = workers["receive"].receive()
        workers["send"].close_input()
    assert (found["different"], found["bytes"]) == (200, 200_000)
