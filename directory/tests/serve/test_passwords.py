"""Where Kafka asks for passwords: what a user chooses by the directory, and what is completed."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from directory.tests.serve.served import Directory
from nightwire.core.kafka import ensure_topics, environment
from nightwire.schemas.topics import DIRECTORY, FILTERS, settings
from tests._guarded_broker import Guarded, guarded_broker, keys_of, speaking_as

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

PASSWORD = "ann's own password"
TOPICS = (DIRECTORY, FILTERS, "alerts.sim", "filter.ann.bright", "filter.bob.faint")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with guarded_broker(tmp_path_factory.mktemp("guarded")) as one:
        for name in ("ann", "bob"):
            assert one.run("user", "add", name, "--quota", "0B", password=PASSWORD).exit_code == 0
        with speaking_as(one.keys):
            ensure_topics(one.bootstrap, [settings(topic) for topic in TOPICS])
        yield one


@pytest.fixture(scope="module")
def directory(guarded: Guarded, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Directory]:
    entered = {**os.environ, **environment(guarded.keys)}
    one = Directory(guarded.bootstrap, tmp_path_factory.mktemp("directory"), environment=entered)
    yield one
    one.stop()


def as_ann(
    guarded: Guarded, directory: Directory, password: str, *words: str, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run a verb as ann, who knows her password and where the directory is."""
    env = {**os.environ, **environment(keys_of("ann", password)), **more}
    env |= {"NIGHTWIRE_DIRECTORY": f"http://127.0.0.1:{directory.port}"}
    env |= {"KAFKA_BOOTSTRAP_SERVERS": guarded.bootstrap}
    command = [sys.executable, "-m", "nightwire.core.cli", *words]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)
