"""The sandbox, with real processes: verdicts, limits, and filters that share a process."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from filters.tests.helpers.sandboxed import (
    BRIGHT,
    LIMITS,
    PASSED,
    ROWS,
    function,
    is_right,
    judge,
    row_filter,
)
from nightwire.filters.sandbox import Limits, NoSandboxError, RowFilter, Sandbox, SandboxError, layers, pool
from nightwire.filters.sandbox.confinement import LAYERS
from nightwire.filters.sandbox.types import Usage
from nightwire.schemas import SIM_ALERT_ID, sim_alert_schema, wire

REACH = """
import enum
modules = getattr(enum, "sys").modules
"""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """Yield a sandbox with short limits."""
    with Sandbox(limits=LIMITS) as one:
        yield one


@pytest.mark.slow
def test_verdicts_are_those_of_plain_python(sandbox: Sandbox, batch: Any) -> None:
    found = judge(
        sandbox, batch, row_filter("alice", BRIGHT), row_filter("bob", "def keep(a): return a.id % 2")
    )
    assert is_right(found["alice/one"])
    assert found["bob/one"].passed.tolist() == [0, 2, 4, 6]
    assert not found["alice/one"].late
    assert found["alice/one"].cpu_s > 0


def test_true_passes_without_a_rank(sandbox: Sandbox, batch: Any) -> None:
    sources = {"yes": "True", "number": "2", "word": "'yes'", "huge": "10 ** 400", "array": "np.float32(1.5)"}
    filters = [
        row_filter("alice", f"import numpy as np\ndef keep(a): return {it}", name)
        for name, it in sources.items()
    ]
    found = judge(sandbox, batch, *filters)
    ranks = {name: repr(float(found[f"alice/{name}"].rank[0])) for name in sources}
    assert ranks == {"yes": "nan", "number": "2.0", "word": "nan", "huge": "nan", "array": "1.5"}


CHANGES = {
    "attribute": "def keep(a):\n    a.magnitude = 1\n    return True",
    "list": "def keep(a):\n    a.history.clear()\n    return len(a.history) == 0",
    "counter": "def keep(a):\n    keep.seen = getattr(keep, 'seen', 0) + 1\n    return keep.seen",
}
READS = "def keep(a):\n    return 1000 * len(a.history) + (a.magnitude or 0)"


def test_what_one_filter_does_to_an_alert_another_of_its_owner_does_not_see(
    sandbox: Sandbox, batch: Any
) -> None:
    fields = ("id", "magnitude", "history.flux", "history.mjd_tai")
    filters = [replace(row_filter("alice", text, name), fields=fields) for name, text in CHANGES.items()]
    reads = replace(row_filter("bob", READS), fields=fields)
    (alone,) = judge(sandbox, batch, reads).values()
    found = judge(sandbox, batch, *filters, replace(reads, owner="alice"))
    assert found["alice/one"].rank.tolist() == alone.rank.tolist()
    assert len(found["alice/list"].passed) == ROWS
    assert set(found["alice/attribute"].faults) == set(range(ROWS))
    assert "AttributeError" in found["alice/attribute"].faults[0]


def test_whole_alerts_are_judged_as_columns_are(sandbox: Sandbox, bodies: list[bytes], batch: Any) -> None:
    values = [wire.frame(SIM_ALERT_ID, body) for body in bodies]
    whole = RowFilter("alice", "whole", 1, "def keep(a): return a['diaSource']['psfFlux'] > 300", "keep")
    found = sandbox.judge(
        [whole, row_filter("bob", BRIGHT)],
        "sim",
        batch=batch,
        values=values,
        schemas={SIM_ALERT_ID: sim_alert_schema()},
    )
    assert found["alice/whole"].passed.tolist() == PASSED
    assert is_right(found["bob/one"])


def test_a_filter_that_wants_what_the_batch_does_not_bring_is_told(sandbox: Sandbox, batch: Any) -> None:
    whole = RowFilter("alice", "whole", 1, BRIGHT, "keep")
    found = judge(sandbox, batch, whole, row_filter("bob", BRIGHT))
    assert "whole alerts" in (found["alice/whole"].killed or "")
    assert is_right(found["bob/one"])


def test_columns_and_messages_are_of_the_same_alerts(sandbox: Sandbox, batch: Any) -> None:
    with pytest.raises(ValueError, match="same alerts"):
        sandbox.judge([], "sim", batch=batch, values=[b""])
    with pytest.raises(ValueError, match="same alerts"):
        sandbox.judge([], "sim")


def test_an_empty_batch_is_judged(sandbox: Sandbox, batch: Any) -> None:
    outcome = judge(sandbox, batch.slice(0, 0), row_filter("alice", BRIGHT))["alice/one"]
    assert (outcome.evaluated, len(outcome.passed), dict(outcome.faults)) == (0, 0, {})


def test_an_exception_on_one_alert_is_a_fault_of_that_alert(sandbox: Sandbox, batch: Any) -> None:
    source = function("if alert.id == 5:\n    return alert.nothing\nreturn alert.flux > 300")
    outcome = judge(sandbox, batch, row_filter("alice", source))["alice/one"]
    assert outcome.passed.tolist() == [3, 5, 6, 7]
    assert list(outcome.faults) == [4]
    assert "AttributeError" in outcome.faults[4]
    assert "(line 4: return alert.nothing)" in outcome.faults[4]


def test_a_field_that_was_not_declared_is_named(sandbox: Sandbox, batch: Any) -> None:
    outcome = judge(sandbox, batch, row_filter("alice", "def keep(a): return a['diaSource']['apFlux']"))[
        "alice/one"
    ]
    assert len(outcome.faults) == ROWS
    assert "apFlux" in outcome.faults[0]


@pytest.mark.slow
def test_a_top_level_that_fails_faults_every_alert(sandbox: Sandbox, batch: Any) -> None:
    found = judge(
        sandbox,
        batch,
        row_filter("alice", "LIMIT = 1 / 0\n" + BRIGHT),
        row_filter("bob", "raise SystemExit\n" + BRIGHT),
        row_filter("carol", "import scipy.nowhere\n" + BRIGHT),
    )
    assert "ZeroDivisionError: division by zero (line 1: LIMIT = 1 / 0)" in found["alice/one"].faults[7]
    assert "SystemExit" in found["bob/one"].faults[0]
    assert "ModuleNotFoundError" in found["carol/one"].faults[0]
    assert all(len(outcome.faults) == ROWS for outcome in found.values())


def test_a_late_filter_keeps_the_verdicts_that_it_has(sandbox: Sandbox, batch: Any) -> None:
    source = function("while alert.id == 5:\n    pass\nreturn alert.flux > 300")
    outcome = judge(sandbox, batch, row_filter("alice", source))["alice/one"]
    assert outcome.late
    assert outcome.killed is None
    assert (outcome.evaluated, outcome.passed.tolist()) == (5, [3])
    assert "took longer than 0.3 s of CPU time" in outcome.faults[4]
    assert "(line 3: while alert.id == 5:)" in outcome.faults[4]


def test_one_filter_can_be_given_less_time(sandbox: Sandbox, batch: Any) -> None:
    loop = "def keep(alert):\n    while True: pass"
    short = replace(row_filter("alice", loop), cpu_s=0.05)
    outcome = judge(sandbox, batch, short)["alice/one"]
    assert re.search(r"took longer than 0\.05 s of CPU time|took longer than 0\.25 s by", outcome.faults[0])
    assert Limits(cpu_s=2.0, wall_s=6.0).within(1.0) == Limits(cpu_s=1.0, wall_s=3.0)
    assert Limits(cpu_s=2.0).within(3.0) == Limits(cpu_s=2.0)


def test_a_crash_names_its_alert(sandbox: Sandbox, batch: Any) -> None:
    source = function("if alert.id == 5:\n    modules['ctypes'].string_at(0)\nreturn True", REACH)
    outcome = judge(sandbox, batch, row_filter("alice", source))["alice/one"]
    assert dict(outcome.faults) == {4: "its process crashed (SIGSEGV)"}
    assert outcome.killed == "its process crashed (SIGSEGV)"


def test_who_is_not_in_the_batch_any_more_is_forgotten_not_confused(sandbox: Sandbox, batch: Any) -> None:
    """A new version of a name is compiled anew, in the process of an earlier batch."""
    first = judge(sandbox, batch, row_filter("alice", "def keep(a): return False"))["alice/one"]
    second = judge(sandbox, batch, row_filter("alice", BRIGHT))["alice/one"]
    assert len(first.passed) == 0
    assert is_right(second)


FORGED = """
import enum
modules = getattr(enum, "sys").modules

def keep(alert):
    frame = getattr(modules["sys"], "_getframe")()
    while "nonce" not in frame.f_locals:
        frame = frame.f_back
    header = modules["struct"].pack("<16sIIIII", frame.f_locals["nonce"], 8, 8, 0, 0, 0)
    modules["os"].write(3, header + bytes([1] * 8) + bytes(64))
    return False
"""


def test_who_forges_an_answer_forges_his_own(sandbox: Sandbox, batch: Any) -> None:
    """With a request's nonce, a filter can forge its own verdicts, and of no other filter."""
    filters = (
        row_filter("mallory", FORGED),
        row_filter("mallory", BRIGHT, "other"),
        row_filter("alice", BRIGHT),
    )
    for _ in range(2):
        found = judge(sandbox, batch, *filters)
        assert is_right(found["alice/one"])
    assert found["mallory/one"].passed.tolist() in (list(range(ROWS)), [])


def test_the_batch_cannot_be_changed_for_others(sandbox: Sandbox, batch: Any) -> None:
    """A private copy can: it is the filter's own, as its memory is."""
    body = """
    gc, ctypes = modules["gc"], modules["ctypes"]
    mapped = next(one for one in gc.get_objects() if type(one).__name__ == "MappedFile")
    libc = ctypes.CDLL(None)
    size = getattr(mapped, "_size")
    if libc.mprotect(ctypes.c_void_p(mapped.address), ctypes.c_size_t(size), 3) == 0:
        ctypes.memset(mapped.address, 0, size)
        return True
    """
    mallory = row_filter("mallory", function(dedent(body).strip(), REACH))
    found = judge(sandbox, batch, mallory, row_filter("zoe", BRIGHT), row_filter("zoe", BRIGHT, "two"))
    # it has found the batch
    assert "StopIteration" not in "".join(found["mallory/one"].faults.values())
    assert is_right(found["zoe/one"])
    assert is_right(found["zoe/two"])
    assert is_right(judge(sandbox, batch, row_filter("mallory", BRIGHT))["mallory/one"])


def test_what_is_patched_is_patched_for_its_owner_alone(sandbox: Sandbox, batch: Any) -> None:
    body = "modules['builtins'].bool = modules['nightwire.schemas'].AlertView.flux = 5\nreturn False"
    patching = row_filter("mallory", function(body, REACH))
    for _ in range(2):
        found = judge(sandbox, batch, patching, row_filter("alice", BRIGHT))
        assert is_right(found["alice/one"])


@pytest.mark.slow
def test_memory_is_given_back_with_its_process(sandbox: Sandbox, batch: Any) -> None:
    """A filter that keeps much gets a new process, without harm to its owner's others."""
    hoarder = row_filter("hugo", function("kept.append(b'x' * (14 << 20))\nreturn True", "kept = []"))
    for _ in range(3):
        found = judge(sandbox, batch, hoarder, row_filter("hugo", BRIGHT, "other"))
        assert len(found["hugo/one"].passed) == ROWS
        assert is_right(found["hugo/other"])


def pids_of(sandbox: Sandbox) -> dict[str, int]:
    """Return the ids of the owners' processes."""
    return {owner: process.pid for owner, process in sandbox._pool._by_owner.items()}


def test_each_owner_has_a_process_and_keeps_it(sandbox: Sandbox, batch: Any) -> None:
    filters = [row_filter(owner, BRIGHT, name) for owner in ("alice", "bob") for name in ("one", "two")]
    judge(sandbox, batch, *filters)
    before = pids_of(sandbox)
    judge(sandbox, batch, *filters)
    assert before["alice"] != before["bob"]
    assert {owner: pids_of(sandbox)[owner] for owner in ("alice", "bob")} == {
        owner: before[owner] for owner in ("alice", "bob")
    }


def test_a_process_that_others_killed_is_no_fault_of_its_filter(sandbox: Sandbox, batch: Any) -> None:
    judge(sandbox, batch, row_filter("alice", BRIGHT))
    os.kill(pids_of(sandbox)["alice"], signal.SIGKILL)
    assert is_right(judge(sandbox, batch, row_filter("alice", BRIGHT))["alice/one"])


@pytest.mark.slow
def test_a_killed_zygote_is_replaced(sandbox: Sandbox, batch: Any) -> None:
    judge(sandbox, batch, row_filter("alice", BRIGHT))
    killed = sandbox._pool._zygote._process
    killed.kill()
    killed.wait(30)  # until then the processes that it forked live, and judge
    found = judge(sandbox, batch, row_filter("alice", BRIGHT), row_filter("bob", BRIGHT))
    assert is_right(found["alice/one"])
    assert is_right(found["bob/one"])


def test_a_signal_to_all_is_left_to_who_uses_the_sandbox(sandbox: Sandbox, batch: Any) -> None:
    """Ctrl-C in a terminal reaches every process; the engine finishes its batch first."""
    judge(sandbox, batch, row_filter("alice", BRIGHT))
    before = pids_of(sandbox)["alice"]
    for pid in (sandbox._pool._zygote._process.pid, before):
        os.kill(pid, signal.SIGINT)
        os.kill(pid, signal.SIGTERM)
    assert is_right(judge(sandbox, batch, row_filter("alice", BRIGHT))["alice/one"])
    assert pids_of(sandbox)["alice"] == before


def test_what_forks_has_one_thread(sandbox: Sandbox) -> None:
    tasks = Path(f"/proc/{sandbox._pool._zygote._process.pid}/task")
    assert len(list(tasks.iterdir())) == 1


@pytest.mark.slow
def test_the_processes_end_with_the_sandbox_whether_it_is_closed_or_forgotten(batch: Any) -> None:
    with Sandbox(limits=LIMITS) as one:
        judge(one, batch, row_filter("alice", BRIGHT))
        pids = [*pids_of(one).values(), one._pool._zygote._process.pid]
    assert [pid for pid in pids if alive(pid)] == []
    other = Sandbox(limits=LIMITS)
    zygote = other._pool._zygote._process.pid
    del other
    assert not alive(zygote)


def alive(pid: int) -> bool:
    """Whether there is such a process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_all_layers_are_here() -> None:
    found = layers()
    assert set(found) == set(LAYERS)
    assert {layer for layer, reason in found.items() if reason} <= {"landlock"}


WITHOUT = """
import platform, sys
from nightwire.filters.sandbox import Sandbox, SandboxError, syscalls

machine = platform.machine()
denied = {"seccomp": syscalls.SECCOMP[machine], "landlock": syscalls.LANDLOCK_CREATE}[sys.argv[2]]
syscalls.prctl(syscalls.NO_NEW_PRIVS, 1)
syscalls.install_seccomp([
    (syscalls.LOAD, 0, 0, syscalls.NUMBER),
    (syscalls.EQUAL, 0, 1, denied),
    (syscalls.RETURN, 0, 0, syscalls.REFUSE),
    (syscalls.RETURN, 0, 0, syscalls.ALLOW),
])
try:
    with Sandbox(sys.argv[1]) as one:
        print("without", *one.missing)
except SandboxError as error:
    print("refused:", error)
"""
"""A kernel that lacks a layer: one that refuses the call which puts it up."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strength", "layer", "said"),
    [
        ("strong", "seccomp", "refused: .*there is no seccomp .*Operation not permitted.*--sandbox weak"),
        ("weak", "seccomp", "without seccomp"),
        ("strong", "landlock", "without landlock"),
    ],
)
def test_a_missing_layer_is_refused_by_name_unless_told_otherwise(
    strength: str, layer: str, said: str
) -> None:
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT, strength, layer], capture_output=True, text=True, check=True
    )
    assert re.match(said, run.stdout), run.stdout + run.stderr


def test_a_sandbox_is_not_used_on_both_sides_of_a_fork(sandbox: Sandbox, batch: Any) -> None:
    sandbox._process_id, mine = 0, sandbox._process_id
    try:
        with pytest.raises(SandboxError, match="another process"):
            judge(sandbox, batch, row_filter("alice", BRIGHT))
    finally:
        sandbox._process_id = mine


def test_a_process_that_waits_for_a_core_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    monkeypatch.setattr(pool, "LOOK_S", 0.01)
    clock = iter([Usage(0, 0, 0), Usage(0, 8, 7.5), Usage(0, 16, 15.2), Usage(0, 24, 22)])

    def usage_of(_pid: int) -> Usage:
        used = next(clock)
        if used.elapsed_s == 16:
            theirs.send(b"ready")
        return used

    monkeypatch.setattr(pool, "usage_of", usage_of)
    with ours, theirs:
        assert pool.await_answer(ours, os.getpid(), 1.0, 16) == b"ready"


def test_a_process_that_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "LOOK_S", 0.01)
    ours, theirs = socket.socketpair()
    ours.settimeout(7.0)
    with ours, theirs:
        with pytest.raises(TimeoutError):
            pool.await_answer(ours, os.getpid(), 0.05, 16)
        assert ours.gettimeout() == 7.0, "what is sent next waits as long as before"


@pytest.mark.parametrize(
    ("program", "error"),
    [
        ("raise SystemExit('astropy is broken')", NoSandboxError),
        ("import os; os.kill(os.getpid(), 9)", SandboxError),
    ],
)
def test_a_zygote_that_was_lost_is_no_machine_without_a_sandbox(
    monkeypatch: pytest.MonkeyPatch, program: str, error: type[SandboxError]
) -> None:
    monkeypatch.setattr(pool, "ZYGOTE_PROGRAM", program)
    with pytest.raises(SandboxError, match="zygote process is gone as it started") as raised:
        Sandbox()
    assert type(raised.value) is error
