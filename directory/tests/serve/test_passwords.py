"""Where Kafka asks for passwords: what a user chooses by the directory, and what is completed."""

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator

import httpx
import pytest

from directory.tests.serve.served import Directory
from nightwire.core.kafka import Writer, admin, ensure_topics, environment, producer
from nightwire.core.stack.kafka.principals import let_in
from nightwire.schemas import SIM_ALERT_ID, Codec, sim_alert_schema
from nightwire.schemas.topics import DIRECTORY, FILTERS, OWED, settings
from nightwire.schemas.wire import frame
from tests._alerts import empty
from tests._guarded_broker import Guarded, guarded_broker, keys_of, speaking_as
from tests._waiting import until

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

KEY = "ann's own password"
MAIN = "from nightwire.core.cli import main; main(prog_name='nightwire')"
TOPICS = (DIRECTORY, FILTERS, "alerts.sim", "filter.ann.bright", "filter.bob.faint")
KNOWN = {"filter.ann.bright", "filter.bob.faint"}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with guarded_broker(tmp_path_factory.mktemp("guarded")) as one:
        for name in ("ann", "bob"):
            assert one.run("user", "add", name, "--quota", "0B", password=KEY).exit_code == 0
        with speaking_as(one.keys):
            ensure_topics(one.bootstrap, [settings(topic) for topic in TOPICS])
            alert = empty(sim_alert_schema()) | {"diaSourceId": 7}
            writer = Writer(producer(one.bootstrap))
            for topic in KNOWN:
                writer.write(topic, frame(SIM_ALERT_ID, Codec(sim_alert_schema()).encode(alert)))
            writer.flush()
        yield one


@pytest.fixture(scope="module")
def directory(guarded: Guarded, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Directory]:
    with speaking_as(guarded.keys):
        its_own = let_in(admin(guarded.bootstrap), {"directory": secrets.token_urlsafe()})["directory"]
    entered = {**os.environ, **environment(guarded.keys), **its_own}
    one = Directory(guarded.bootstrap, tmp_path_factory.mktemp("directory"), environment=entered)
    known = "SELECT 1 FROM channels"
    until(lambda: len(one.ask(known, auth=("ann", KEY))) == 3, "the topics are known")
    yield one
    one.stop()


def as_ann(
    guarded: Guarded, directory: Directory, password: str, *words: str, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run a verb as ann, who knows her password and where the directory is."""
    env = {**os.environ, **environment(keys_of("ann", password)), **more}
    env |= {"NIGHTWIRE_DIRECTORY": f"http://127.0.0.1:{directory.port}"}
    env |= {"KAFKA_BOOTSTRAP_SERVERS": guarded.bootstrap}
    command = [sys.executable, "-c", MAIN, *words]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)


def test_a_user_follows_what_is_hers_by_the_directory(guarded: Guarded, directory: Directory) -> None:
    words = (
        "subscribe",
        "--where",
        "kind = 'filter' and owner = 'ann'",
        "--since",
        "1h",
        "--limit",
        "1",
        "--survey",
        "sim",
    )
    found = as_ann(guarded, directory, KEY, *words, "--format", "json")
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["alert"]["diaSourceId"] == 7
    assert "chosen: filter.ann.bright" in found.stderr


def test_what_is_another_users_is_refused_by_name(guarded: Guarded, directory: Directory) -> None:
    words = ("subscribe", "--where", "owner = 'bob'", "--since", "1h", "--no-follow")
    found = as_ann(guarded, directory, KEY, *words)
    assert found.returncode == 1, found.stdout
    assert "filter.bob.faint" in found.stderr


def test_a_slow_link_is_owed_by_the_directory_and_nobody_reads_that(
    guarded: Guarded, directory: Directory
) -> None:
    def read(topic: str, group: str, name: str = "ann") -> httpx.Response:
        asked = {"group": group, "slow": 0.1, "timeout": 30, "max": 1, "bytes": 1}
        return directory.http.get(f"/topics/{topic}/records", params=asked, auth=(name, KEY))

    said = until(lambda: (one := read("filter.ann.bright", "ann.dome")).json() and one, "an alert")
    assert said.headers["Nightwire-Level"] in {"full", "stampless"}
    refused = [
        read("filter.bob.faint", "ann.dome"),
        read("filter.ann.bright", "bob.dome"),
        read(OWED, "ann.dome"),
    ]
    refused.append(read("filter.ann.bright", "ann.dome", "bob"))
    assert [one.status_code for one in refused] == [403] * 4


def test_a_wrong_password_is_said(guarded: Guarded, directory: Directory) -> None:
    found = as_ann(guarded, directory, "wrong", "subscribe", "--where", "owner = 'ann'", "--no-follow")
    assert (found.returncode, "password" in found.stderr) == (1, True), found.stderr


@pytest.mark.parametrize(("key", "offered"), [(KEY, KNOWN), ("wrong", set())])
def test_names_are_completed_for_who_may_ask(
    guarded: Guarded, directory: Directory, key: str, offered: set[str]
) -> None:
    line = {"COMP_WORDS": "nightwire subscribe filter.", "COMP_CWORD": "2"}

    def completed() -> set[str]:
        found = as_ann(guarded, directory, key, **line, _NIGHTWIRE_COMPLETE="bash_complete")
        return {one.partition(",")[2] for one in found.stdout.split()}

    until(lambda: completed() == offered, "half a second's patience may be too short at first")
