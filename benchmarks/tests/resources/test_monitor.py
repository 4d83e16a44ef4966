"""What a run takes of the machine."""

import os
import socket
import subprocess
import sys

import psutil
import pytest

from nightwire.benchmarks.model.sample import ProcessUse, TcpTraffic
from nightwire.benchmarks.resources.cpu import others_share
from nightwire.benchmarks.resources.monitor import OWN_PROCESS, ResourceMonitor, Snapshot, own_time, program
from nightwire.benchmarks.resources.own_traffic import own_traffic

BOOT = (5.0, 1.0, 3.0, 90.0, 1.0, 0.5, 0.5, 0.5, 7.0, 7.0)
"""User, nice, system, idle, iowait, irq, softirq, steal; of guests, who are in user. [s]"""


@pytest.mark.parametrize(
    ("busy", "ours", "share"),
    [(1.5, 1.0, 0.25), (1.0, 1.0, 0.0), (0.9, 1.0, 0.0), (2.0, 0.0, 1.0)],
)
@pytest.mark.parametrize("place", [0, 1, 2, 7])
def test_others_took_what_was_busy_and_not_ours(place: int, busy: float, ours: float, share: float) -> None:
    later = [*BOOT]
    later[place] += busy
    later[3] += 2.0 - busy
    later[8] += 9.0
    assert others_share(BOOT, later, ours) == pytest.approx(share)


@pytest.mark.parametrize("place", [3, 4, 5, 6])
def test_idle_time_and_interrupts_are_nobodys(place: int) -> None:
    later = [*BOOT]
    later[place] += 2.0
    assert others_share(BOOT, later, 0.0) == 0.0


def test_the_machine_tells_these_times() -> None:
    fields = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
    assert psutil.cpu_times()._fields[:8] == fields


@pytest.mark.parametrize(
    ("path", "name"), [("/usr/bin/python3.11", "python"), ("/opt/java", "java"), ("", "unknown")]
)
def test_a_program_is_called_without_its_version(path: str, name: str) -> None:
    assert program(path) == name


def test_no_time_is_nobodys() -> None:
    assert others_share(BOOT, BOOT, 0.0) == 0.0


@pytest.mark.slow
def test_cpu_and_memory_are_counted_by_role_also_of_a_child_that_has_ended() -> None:
    watch = ResourceMonitor()
    burn = "import time\nsum(range(30_000_000))\nprint('done', flush=True)\ninput()"
    with watch.window() as window:
        child = subprocess.Popen(
            [sys.executable, "-c", burn], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        watch.role(child.pid, "burner")
        assert child.stdout is not None
        child.stdout.readline()
        child.communicate("\n")
    use = {one.name: one for one in window.use.processes}
    assert use["burner"].cpu_seconds > 0.1
    assert use["burner"].peak_rss_bytes > 1_000_000
    assert use[OWN_PROCESS].peak_rss_bytes > 1_000_000
    assert 0.0 <= window.use.others <= 1.0
    assert window.use.seconds > 0.0
    assert child.pid != os.getpid()


def test_what_processes_say_that_they_moved_is_added_and_belongs_to_one_run() -> None:
    watch = ResourceMonitor()
    with watch.window() as first:
        watch.traffic(OWN_PROCESS, TcpTraffic(3, 5))
        watch.traffic(OWN_PROCESS, TcpTraffic(10, 20))
        watch.traffic("nobody who was seen", TcpTraffic(1, 1))
    with watch.window() as second:
        pass
    (ours,) = [one for one in first.use.processes if one.name == OWN_PROCESS]
    assert (ours.sent_bytes, ours.received_bytes) == (13, 25)
    assert all((one.sent_bytes, one.received_bytes) == (None, None) for one in second.use.processes)


def test_a_process_knows_what_went_over_its_connections() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as one,
        server.accept()[0] as other,
    ):
        before = own_traffic()
        one.sendall(b"x" * 50_000)
        assert len(other.recv(50_000, socket.MSG_WAITALL)) == 50_000
        other.sendall(b"y")
        assert one.recv(1) == b"y"
        moved = own_traffic()
    assert moved.received - before.received == 50_001  # both ends are ours
    # the last acknowledgement may be on its way
    assert moved.sent - before.sent in (50_000, 50_001)
    assert TcpTraffic(1, 2).mirrored == TcpTraffic(2, 1)


def test_what_is_killed_with_its_parent_is_not_others() -> None:
    looks = [
        Snapshot({(7, "engine"): 100.0}, {}, 103.0),
        Snapshot({(7, "engine"): 101.5}, {}, 104.5),
        Snapshot({}, {}, 3.0),
    ]
    assert own_time(looks, [ProcessUse("engine", 1.5, 0)]) == 1.5
    assert own_time(looks[:2], []) == 1.5
