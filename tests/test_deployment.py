"""What spans rooms in deployment: the compose file, the images' pins, and the metrics that are
watched.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml
from prometheus_client import CollectorRegistry

from nightwire.core.cli import main
from nightwire.core.runtime import Endpoints
from nightwire.filters.stats import Metrics as FilterMetrics
from nightwire.flows.serve import WorkerMetrics
from nightwire.flows.worker import Worker, WorkerSettings
from nightwire.gateway.status.metrics import GatewayMetrics
from nightwire.monitoring.config import rules
from nightwire.monitoring.dashboards import ALL, queries
from nightwire.monitoring.exporter import PipelineState, register
from nightwire.producer.ingest.metrics import Metrics as IngestMetrics
from nightwire.producer.writing.metrics import Metrics as ProducerMetrics
from nightwire.schemas import SchemaRegistry
from nightwire.schemas.registry.server import Metrics as SchemaMetrics
from tests._tracked import ROOT, tracked

COMPOSE_FILE = ROOT / "docker-compose.yml"
COMPOSE_FILES = sorted(ROOT.glob("docker-compose*.yml"))
DOCKERFILES = sorted(ROOT.glob("*/Dockerfile"))
SERVERS = [ROOT / f"{room}/src/nightwire/{room}" for room in ("archive", "directory", "portal")]
SERVERS = [path for room in SERVERS for path in room.rglob("serve*.py")]
METRIC = re.compile(r'"(nightwire_\w+)"')
"""Names of metrics where each is made in the process that has it."""
FOREIGN = ("up", "node_", "ALERTS", "process_")
"""Metrics of Prometheus and node-exporter."""


def exported() -> set[str]:
    """Return the name of every metric that some process of ours exports."""
    registry = CollectorRegistry()
    for room in (FilterMetrics, GatewayMetrics, ProducerMetrics, SchemaMetrics):
        room(registry)
    IngestMetrics(registry, "ztf")
    registry.register(WorkerMetrics(Worker(WorkerSettings(Endpoints(""), "any"), SchemaRegistry(None))))
    register(registry, lambda: (PipelineState(), 0.0))
    shown = {name for family in registry.collect() for name in sample_names(family.name, family.type)}
    return shown | {name for room in SERVERS for name in re.findall(METRIC, room.read_text())}


def sample_names(name: str, kind: str) -> Iterator[str]:
    if kind == "histogram":
        yield from (f"{name}_{part}" for part in ("bucket", "sum", "count"))
    elif kind == "summary":
        yield from (f"{name}_{part}" for part in ("sum", "count"))
    else:
        yield f"{name}_total" if kind == "counter" else name


def recorded() -> set[str]:
    return set(re.findall(r"- record: (\S+)", rules()))


def expressions() -> list[str]:
    """Return every query of the dashboards, and the lines of the rules that hold one."""
    lines = [line for line in rules().splitlines() if not re.match(r"\s*(#|summary|action|- alert)", line)]
    return [*queries(ALL), *lines]


def test_every_metric_that_is_watched_is_exported_by_some_process() -> None:
    asked = {name for line in expressions() for name in re.findall(r"\bnightwire[_:][a-z0-9_:]+", line)}
    assert len(asked) > 20
    assert asked - exported() - recorded() == set()


def test_a_metric_that_nobody_exports_would_be_seen() -> None:
    assert "nightwire_accounts_read" in exported()
    assert "nightwire_gateway_acknowledged_seconds_bucket" in exported()
    assert "nightwire_accounts_lost" not in exported()


def test_compose_watches_services_that_are_there() -> None:
    text = COMPOSE_FILE.read_text()
    services = set(re.findall(r"^  ([a-z0-9-]+):$", text, re.MULTILINE))
    watched = re.findall(r'--watch, "[a-z0-9_:-]+=([a-z0-9-]+):', text)
    assert len(watched) > 4
    assert set(watched) <= services


def options_by_variable(*words: str) -> set[str]:
    """Return the variables from which a verb takes its options."""
    context, command = click.Context(main, auto_envvar_prefix="NIGHTWIRE"), main
    for word in words:
        command = command.get_command(context, word)  # type: ignore[union-attr, assignment]
        context = click.Context(command, info_name=word, parent=context)
    return {f"{context.auto_envvar_prefix}_{one.name}".upper() for one in command.params}


SERVED = ("gateway", "schema", "directory", "archive", "portal")


def test_compose_names_options_by_variables_that_are_there() -> None:
    known = {one for room in SERVED for one in options_by_variable(room, "serve")}
    asked = set(
        re.findall(
            rf"NIGHTWIRE_(?:{'|'.join(SERVED).upper()})_SERVE\w+",
            " ".join(map(Path.read_text, COMPOSE_FILES)),
        )
    )
    assert len(asked) > 4
    assert asked <= known


def test_what_other_machines_reach_in_compose_speaks_tls() -> None:
    """Every port that is published beyond 127.0.0.1 is a door with TLS."""
    port = re.compile(r'"(\S*?):?\$\{\w+:-\d+\}:(\d+)"')
    published = {file.name: port.findall(file.read_text()) for file in COMPOSE_FILES}
    assert {where for where, _ in published["docker-compose.yml"]} == {"127.0.0.1"}
    doors = {
        ("${PUBLIC_BIND:-0.0.0.0}", port)
        for port in ("29092", "8443", *map(str, range(8445, 8448)), "8498", "8499")
    }
    assert set(published["docker-compose.tls.yml"]) == doors


@pytest.mark.slow
@pytest.mark.parametrize("file", COMPOSE_FILES, ids=lambda file: file.name)
def test_the_compose_file_is_valid(file: Path) -> None:
    check = ["check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(file)]
    done = subprocess.run([sys.executable, "-m", *check], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_everything_is_published_on_this_machine_alone() -> None:
    ports = re.findall(r'"([^"\n]*\$\{[A-Z0-9_]*PORT[^"\n]*)"', COMPOSE_FILE.read_text())
    assert len(ports) == 12
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_every_variable_of_the_compose_file_has_an_example() -> None:
    used = set(re.findall(r"\$\{([A-Z0-9_]+)", COMPOSE_FILE.read_text()))
    named = set(re.findall(r"^([A-Z0-9_]+)=", (ROOT / ".env.example").read_text(), re.MULTILINE))
    assert used - named == set()
    assert named - used == {"COMPOSE_PROFILES"}


def test_no_image_is_the_latest_one() -> None:
    images = re.findall(r"image: (\S+)", COMPOSE_FILE.read_text())
    bases = [
        base for path in DOCKERFILES for base in re.findall(r"^FROM (\S+)", path.read_text(), re.MULTILINE)
    ]
    assert bases
    assert [name for name in [*images, *bases] if ":" not in name or name.endswith(":latest")] == []


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.parent.name)
def test_an_image_runs_as_nobody_special_and_takes_packages_by_hash(path: Path) -> None:
    text = path.read_text()
    assert re.findall(r"^USER (\S+)", text, re.MULTILINE)[-1] == "nightwire"
    for line in re.findall(r"pip install.*", text):
        assert "--require-hashes" in line or "--no-deps" in line


def test_images_are_built_from_what_a_fresh_clone_has() -> None:
    """What `make setup` leaves beside it is not there on a server."""
    copied = {
        ROOT / name
        for path in DOCKERFILES
        for names in re.findall(r"^COPY ([^-].*) \S+$", path.read_text(), re.MULTILINE)
        for name in names.split()
    }
    assert ROOT / "core" / "requirements.lock" in copied
    assert copied <= {place for file in tracked() for place in (file, *file.parents)}


def test_images_in_which_alerts_are_read_hold_the_native_codec() -> None:
    """They say so in the same words, so the engine builds it once for all of them."""
    words = re.compile(r"^FROM rust(?:.*\n)+?\n|^COPY --from=native.*\n.*", re.MULTILINE)
    texts = {path.parent.name: path.read_text() for path in DOCKERFILES}
    stages = {room: tuple(words.findall(text)) for room, text in texts.items() if "native" in text}
    assert stages.keys() == {"producer", "consumers", "filters", "gateway-vtp", "archive", "portal"}
    assert [len(stage) for stage in set(stages.values())] == [2]


def test_the_images_rust_is_the_one_that_the_codec_asks_for() -> None:
    wanted = re.findall(r'^rust-version = "(.*)"', (ROOT / "native" / "Cargo.toml").read_text(), re.MULTILINE)
    bases = [
        base
        for path in DOCKERFILES
        for base in re.findall(r"^FROM rust:([\d.]+)", path.read_text(), re.MULTILINE)
    ]
    assert set(bases) == set(wanted)


def test_the_images_locks_are_cut_from_the_roots() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "compose" / "locks.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stderr}run: python tests/compose/locks.py"


def test_images_are_built_from_every_rooms_sources() -> None:
    kept = (ROOT / ".dockerignore").read_text().splitlines()
    rooms = {path.parent.parent.name for path in ROOT.glob("*/src/nightwire")}
    assert {f"!{room}/src" for room in rooms} <= set(kept)
    copied = {name for path in DOCKERFILES for name in re.findall(r"COPY (\S+\.lock)", path.read_text())}
    assert {f"!{name}" for name in copied} <= set(kept) | {"!core/src/nightwire/core/stack/kafka/jars.lock"}


def made_env(folder: Path) -> "subprocess.CompletedProcess[str]":
    script = ROOT / "core" / "kafka" / "make-env.sh"
    return subprocess.run(["sh", str(script)], cwd=folder, capture_output=True, text=True, check=False)


def test_images_of_others_are_pinned_by_digest_where_there_is_a_hub(tmp_path: Path) -> None:
    (tmp_path / "docker").write_text('#!/bin/sh\n[ "$1" = pull ] || echo "library/x@sha256:$DIGEST"\n')
    (tmp_path / "docker").chmod(0o755)
    for path in (COMPOSE_FILE, *DOCKERFILES, ROOT / "core/kafka/pin-images.sh"):
        copy = tmp_path / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(path.read_text())
    for digest in ("0" * 64, "f" * 64):
        paths = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "DIGEST": digest}
        subprocess.run(["sh", tmp_path / "core/kafka/pin-images.sh"], env=paths, check=True)
        copies = [tmp_path / path.relative_to(ROOT) for path in (COMPOSE_FILE, *DOCKERFILES)]
        named = re.findall(r"^(?:FROM| *image:) (\S+)", "\n".join(c.read_text() for c in copies), re.M)
        others = [one for one in named if not one.startswith(("nightwire/", "${"))]
        assert len(others) > 10
        assert {one.partition("@")[2] for one in others} == {f"sha256:{digest}"}


def test_env_gets_passwords_of_its_own_once(tmp_path: Path) -> None:
    (tmp_path / ".env.example").write_text((ROOT / ".env.example").read_text())
    assert made_env(tmp_path).returncode == 0
    text = (tmp_path / ".env").read_text()
    values = dict(re.findall(r"^([A-Z0-9_]+)=(.*)$", text, re.MULTILINE))
    secrets = [value for name, value in values.items() if name.endswith("PASSWORD")]
    assert len(secrets) == len(set(secrets)) == 12
    assert all(re.fullmatch(r"[\w-]{32}", secret) for secret in secrets)
    assert re.fullmatch(r"[\w-]{22}", values["KAFKA_CLUSTER_ID"])
    assert (tmp_path / ".env").stat().st_mode & 0o077 == 0
    assert made_env(tmp_path).returncode == 0
    assert (tmp_path / ".env").read_text() == text
    (tmp_path / ".env").write_text(re.sub("GATEWAY_PASSWORD=.*\n", "", text))  # as of an older version
    assert made_env(tmp_path).returncode == 0
    now = (tmp_path / ".env").read_text()
    assert re.sub("GATEWAY_PASSWORD=.*\n", "", now) == re.sub("GATEWAY_PASSWORD=.*\n", "", text)
    assert re.search(r"^GATEWAY_PASSWORD=[\w-]{32}$", now, re.MULTILINE)


def test_the_examples_passwords_are_refused(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text((ROOT / ".env.example").read_text())
    assert made_env(tmp_path).returncode == 1
    environment = os.environ | {"KAFKA_PASSWORD": "change-me-too", "KAFKA_SUPER_USER": "nightwire.stack"}
    entry = ["sh", str(ROOT / "core" / "kafka" / "entry.sh")]
    done = subprocess.run(entry, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "everybody knows" in done.stderr


@pytest.mark.parametrize("name", ["docker-compose.yml", "docker-compose.tls.yml"])
def test_a_compose_file_is_yaml(name: str) -> None:
    assert "services" in yaml.safe_load(re.sub(r"!\w+", "", (ROOT / name).read_text()))
