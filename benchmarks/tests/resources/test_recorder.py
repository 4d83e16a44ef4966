"""What processes take over time, kept with the result."""

import json
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jsonschema
import psutil
import pytest

from benchmarks.tests.sample import SampleScenario, Steps, sample_result, samples, schema
from nightwire.benchmarks import Figures, Kind
from nightwire.benchmarks.environment.processes import Child
from nightwire.benchmarks.harness.options import RunOptions
from nightwire.benchmarks.harness.result_files import LARGEST, read_result, write_result
from nightwire.benchmarks.harness.run import run
from nightwire.benchmarks.resources.monitor import ResourceMonitor
from nightwire.benchmarks.resources.process_stats import (
    LOOPBACK,
    ProcessReader,
    ProcessReading,
    Reading,
    SocketCounters,
    has_sockets,
    loopback,
    page_of,
    sockets,
)
from nightwire.benchmarks.resources.prometheus import PrometheusScraper
from nightwire.benchmarks.resources.recorder import line, missing_sources
from nightwire.benchmarks.resources.recording import Recording
from nightwire.benchmarks.resources.time_series import POINTS, SERIES, Span, reading_from, recorded, thinned
from nightwire.core.stack import free_port


def process(pid: int = 7, cpu: float = 0.0, **changes: Any) -> ProcessReading:
    usual: dict[str, Any] = {"parent": 1, "program": "java", "rss": 10, "read": 0, "written": 0}
    return ProcessReading(pid=pid, cpu=cpu, **usual | changes)


def drawn(found: dict[str, Any], role: str, quantity: str) -> list[float | None]:
    (one,) = [
        one["values"] for one in found["processes"] if (one["role"], one["quantity"]) == (role, quantity)
    ]
    values: list[float | None] = one
    return values


def test_counters_become_rates_and_memory_stays() -> None:
    readings = [
        Reading(100.0, [process(cpu=5.0, rss=10, written=0, sent=0)]),
        Reading(102.0, [process(cpu=6.0, rss=30, written=400, sent=80)]),
        Reading(103.0, [process(cpu=6.5, rss=20, written=400, sent=90)]),
    ]
    found = recorded(readings, {7: "kafka"}, {}, [Span("walk", "subject", 0, 101.0, 102.5)])
    assert drawn(found, "kafka", "cpu") == [0.5, 0.5]
    assert drawn(found, "kafka", "memory") == [30.0, 20.0]
    assert drawn(found, "kafka", "disk_written") == [200.0, 0.0]
    assert drawn(found, "kafka", "network_sent") == [40.0, 10.0]
    assert found["runs"] == [{"experiment": "walk", "kind": "subject", "pair": 0, "begin": 1.0, "end": 2.5}]


def test_processes_of_a_role_are_added_and_nobody_is_not_nothing() -> None:
    readings = [
        Reading(0.0, [process(1, parent=0)]),
        Reading(1.0, [process(1, parent=0), process(2, cpu=0.5), process(3, cpu=0.25)]),
        Reading(2.0, [process(1, parent=0)]),
    ]
    found = recorded(readings, {1: "harness", 2: "consumer", 3: "consumer"}, {}, [])
    assert drawn(found, "consumer", "cpu") == [0.75, None]


def test_a_process_without_a_role_is_called_after_its_ancestor() -> None:
    tree = [
        process(1, parent=0),
        process(2, parent=1, program="python3.11"),
        process(3, parent=2, program="java", cpu=1.0),
    ]
    orphan = [process(1, parent=0), process(3, parent=0, program="java", cpu=2.0)]
    found = recorded([Reading(0.0, tree), Reading(1.0, orphan)], {1: "harness", 2: "engine"}, {}, [])
    assert drawn(found, "engine: java", "cpu") == [1.0]


def test_what_is_thinned_out_keeps_its_mean() -> None:
    assert thinned([1.0, 3.0, None, 5.0, None, None], 2) == [2.0, 5.0, None]
    assert thinned([1.0, 2.0, 6.0], 1) == [1.0, 2.0, 6.0]


@pytest.mark.slow
def test_a_night_of_many_processes_and_metrics_fits_into_a_result(tmp_path: Path) -> None:
    busy = [process(pid, cpu=0.0, rss=123_456_789) for pid in range(40)]
    readings = [
        Reading(float(second), [process(one.pid, cpu=second * 0.123, rss=one.rss + second) for one in busy])
        for second in range(0, 8 * 3600, 60)
    ]
    values = [[float(moment), str(moment * 1234.5)] for moment in range(0, 8 * 3600, 60)]
    series = [
        {"metric": {"__name__": "nightwire_x", "n": str(n)}, "values": values} for n in range(SERIES + 9)
    ]
    roles = {one.pid: f"consumer-{one.pid}" for one in busy}
    found = recorded(readings, roles, {"series": series, "step": 60.0}, [])
    assert sum(len(one["values"]) for one in found["processes"]) <= POINTS * 1.1
    assert sum(len(one["values"]) for one in found["metrics"]["series"]) <= POINTS * 1.1
    assert found["metrics"]["left_out"] == 9
    result = sample_result() | {"recorded": found}
    write_result(result, tmp_path / "one.json")
    assert (tmp_path / "one.json").stat().st_size < LARGEST / 2
    assert read_result(tmp_path / "one.json") == json.loads(json.dumps(result))
    jsonschema.validate(read_result(tmp_path / "one.json"), schema())


def test_metrics_that_never_change_are_left_out_and_the_rest_stays_a_counter() -> None:
    def metric(name: str, *values: str) -> dict[str, Any]:
        labels = {"__name__": name, "process": "gateway", "job": "bench", "instance": "127.0.0.1:1"}
        return {"metric": labels, "values": [[100.0 + 5 * at, one] for at, one in enumerate(values)]}

    some = [metric("grows", "1", "2", "NaN", "4"), metric("stays", "7", "7", "7", "7")]
    found = recorded([Reading(90.0, [])], {}, {"series": some, "step": 5.0}, [])["metrics"]
    assert (found["begin"], found["step"], found["left_out"]) == (10.0, 5.0, 1)
    assert found["series"] == [
        {"name": "grows", "labels": {"process": "gateway"}, "values": [1.0, 2.0, None, 4.0]}
    ]


def test_a_line_of_the_recorder_is_read_back() -> None:
    one = Reading(12.5, [process(cpu=1.25, sent=3), process(8)])
    assert reading_from(line(one)) == one
    with pytest.raises(ValueError, match=r"delimiter|Expecting|Unterminated"):
        reading_from(line(one)[:-9])


@pytest.mark.parametrize(
    ("words", "page"),
    [
        (
            ["python", "-m", "nightwire.core.cli", "filter", "run", "--metrics-port", "9401"],
            {9401: "filter-run"},
        ),
        (["x", "nightwire.core.cli", "exporter", "--metrics-port", "5", "--port", "6"], {5: "exporter"}),
        (
            ["python", "-m", "nightwire.core.cli", "gateway", "serve", "--metrics-port", "0"],
            {0: "gateway-serve"},
        ),
        (["java", "-jar", "kafka.jar"], {}),
        (["--metrics-port"], {}),
    ],
)
def test_a_command_line_says_where_its_page_is(words: Sequence[str], page: dict[int, str]) -> None:
    assert page_of(words) == page


def socket_line(pid: int, ports: str, sent: int, received: int) -> str:
    one, other = ports.split()
    ends = f"ESTAB 0 0 127.0.0.1:{one} 127.0.0.1:{other}"
    return (
        f'{ends} users:(("java",pid={pid},fd=5)) bbr bytes_sent:{sent} bytes_received:{received} segs_out:1'
    )


def test_traffic_is_added_connection_by_connection() -> None:
    traffic, ours = SocketCounters(), {7: None}
    traffic.take([socket_line(7, "1 2", 100, 10), socket_line(8, "2 1", 10, 100)], ours)
    traffic.take([socket_line(7, "1 2", 150, 10), socket_line(7, "3 4", 1000, 0)], ours)
    assert traffic.of(7) == (1150, 10)
    traffic.take([socket_line(7, "3 4", 5, 0)], ours)  # the same ports, another connection
    assert traffic.of(7) == (1155, 10)
    assert traffic.of(8) == (0, 0)


def test_the_loopback_device_is_one_of_the_processes() -> None:
    devices = "Inter-|   Receive\n    lo: 700 7 0 0 0 0 0 0 900 9 0 0 0 0 0 0\n  eth0: 1 1 0 0 0 0 0 0 2\n"
    assert (loopback(devices).received, loopback(devices).sent) == (700, 900)
    assert loopback("").sent == 0
    readings = [Reading(0.0, [loopback("lo: 0 0 0 0 0 0 0 0 100")]), Reading(1.0, [loopback(devices)])]
    assert drawn(recorded(readings, {}, {}, []), LOOPBACK, "network_sent") == [800.0]


def test_a_real_connection_is_seen() -> None:
    if not has_sockets():  # then nothing is, and the result says so
        assert sockets() == []
        return
    reader, sent = ProcessReader(psutil.Process()), 300_000
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as one,
        server.accept()[0] as other,
    ):
        other.settimeout(30)
        before = reader.read().processes[0]
        for _turn in range(sent // 1000):
            one.sendall(b"x" * 1000)
            assert other.recv(1000, socket.MSG_WAITALL)
        after = reader.read().processes[0]
    assert sent <= after.sent - before.sent <= 2 * sent
    assert after.received > before.received


def recording(watch: ResourceMonitor, work: Callable[[], None]) -> dict[str, Any]:
    one = Recording(watch, interval=1)
    try:
        work()
        one.ran(samples()[0])
    finally:
        found = one.end()
    return found


@pytest.mark.slow
def test_a_run_has_its_processes_in_the_result() -> None:
    class Busy(Steps):
        def run_once(self, kind: Kind) -> Figures:
            burn = "import time\nend = time.time() + 1.6\nwhile time.time() < end: pass"
            subprocess.run([sys.executable, "-c", burn], check=True)
            return super().run_once(kind)

    result = run(SampleScenario(Busy()), RunOptions(pairs=1, record=True), lambda _text: None)
    jsonschema.validate(json.loads(json.dumps(result)), schema())
    found = result["recorded"]
    burnt = drawn(found, "producer: python", "cpu")
    assert sum(filter(None, burnt)) > 0.1
    assert {one["role"] for one in found["processes"]} >= {"producer", "producer: python", "recorder"}
    assert [one["begin"] >= 0.0 for one in found["runs"]] == [True, True]
    assert "recorded" not in run(SampleScenario(), RunOptions(pairs=1), lambda _text: None)


PAGE = """
import sys, time
from prometheus_client import CollectorRegistry, Counter, generate_latest, start_http_server
registry = CollectorRegistry()
asked = Counter("nightwire_page_asked", "How often.", registry=registry)
class Counting:
    def collect(self):
        asked.inc()
        return []
registry.register(Counting())
start_http_server(int(sys.argv[2]), addr="127.0.0.1", registry=registry)
while asked._value.get() < 4:
    time.sleep(0.05)
print("asked", flush=True)
sys.stdin.read()
"""


@pytest.mark.prometheus
def test_a_real_prometheus_scrapes_the_pages_of_what_was_started(tmp_path: Path) -> None:
    """The page itself says that it was asked; who looks then finds in the result what it said."""

    def work() -> None:
        command = [sys.executable, "-c", PAGE, "--metrics-port", str(free_port()), "page"]
        with Child(command, tmp_path / "log", talks=True) as child:
            assert child.process.stdout is not None
            assert child.process.stdout.readline() == b"asked\n", (tmp_path / "log").read_text()

    found = recording(ResourceMonitor(), work)
    assert [one for one in found["missing"] if one.startswith("prometheus")] == []
    (one,) = [one for one in found["metrics"]["series"] if one["name"] == "nightwire_page_asked_total"]
    values = [value for value in one["values"] if value is not None]
    assert values == sorted(values)
    assert values[-1] >= 2  # the last point lies up to a step before the end
    assert one["labels"] == {"process": "page"}


def test_without_prometheus_the_result_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    one = PrometheusScraper(tmp_path)
    one.start()
    one.scrape({1: "gateway"})
    assert one.series(0.0, 1.0, 1.0) == []
    one.close()
    assert one.missing == ["prometheus is not installed (apt-get install prometheus): no metrics pages"]


def test_a_page_of_which_nobody_knows_the_port_is_named() -> None:
    assert list(missing_sources({9401: "filter-run"})) == ([] if has_sockets() else [*missing_sources({})])
    assert "gateway-serve has its metrics page" in [*missing_sources({0: "gateway-serve"})][-1]


def test_a_recorder_that_died_costs_no_result() -> None:
    watch = ResourceMonitor()

    def kill() -> None:
        psutil.Process(next(pid for pid, role in watch.roles.items() if role == "recorder")).kill()

    found = recording(watch, kill)
    assert "the recorder did not end well" in found["missing"][0]
    assert len(found["runs"]) == 1
