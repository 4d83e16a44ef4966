"""What the shell offers after a tab: by click's own protocol."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from click.testing import CliRunner

from nightwire.core.cli import main
from nightwire.core.kafka import ensure_topics
from nightwire.core.presence import entry
from nightwire.core.runtime import free_port
from nightwire.directory.model import SiteRows, View
from nightwire.schemas.topics import settings
from tests._directory import LIVE_FILTER, directory_of

TOPICS = ("alerts.sim", "filter.ann.bright", "filter.me.faint", "requests.ann", "returns.antares", "visits")
NOBODY = "127.0.0.1:1"


def offered(line: str) -> list[str]:
    """Return what bash is offered at the end of *line*."""
    words = line.split(" ")
    env = {"_NIGHTWIRE_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    found = CliRunner().invoke(main, prog_name="nightwire", env=env)
    assert found.exit_code == 0, found.output
    assert found.stderr == ""
    return [one.partition(",")[2] for one in found.stdout.split()]


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let a directory know topics, filters, owners, groups and a broker."""
    view = View()
    rows = SiteRows(view, "local", NOBODY)
    broker: dict[str, Any] = {
        "owner": "ann",
        "survey": "",
        "topic": "",
        "instance": "",
        "interval": 0.0,
        "ended": False,
    }
    elsewhere = SiteRows(view, "chile", "chile:9092")
    with elsewhere.batch():
        elsewhere.set_topics([("alerts.lsst", 1, None, None, None)])
    with rows.batch():
        rows.set_topics((topic, 1, None, None, None) for topic in TOPICS)
        rows.put_filter("ann", "bright", LIVE_FILTER, "filter.ann.bright")
        rows.put_filter("me", "faint", LIVE_FILTER, "filter.me.faint")
        rows.set_members([("ann.archive", "alerts.sim", 1, None)])
        rows.put_entry(entry("broker", "o'hara", **broker) | {"endpoints": "{}"}, 1000)
    with directory_of(view, NOBODY) as url:
        monkeypatch.setenv("NIGHTWIRE_DIRECTORY", url)
        monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", NOBODY)
        yield
    view.close()


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("nightwire subscribe ", ["alerts.sim", "filter.ann.bright", "filter.me.faint"]),
        ("nightwire subscribe alerts.sim filter.a", ["filter.ann.bright"]),
        ("nightwire subscribe --group ", ["ann.archive"]),
        ("nightwire subscribe --survey s", ["sim"]),
        ("nightwire offsets show a", ["ann.archive"]),
        ("nightwire offsets reset ann.archive --topic v", ["visits"]),
        ("nightwire returns list ", ["antares", "o'hara"]),
        ("nightwire filter show ", ["faint"]),
        ("nightwire filter disable --owner ann ", ["bright"]),
        ("nightwire filter top --owner a", ["ann"]),
        ("nightwire filter submit --source f", ["filter.ann.bright", "filter.me.faint"]),
        ("nightwire gateway serve --feed ", ["filter.ann.bright", "filter.me.faint"]),
        ("nightwire directory add br", ["broker"]),
        ("nightwire directory add stream x --topic alerts.", ["alerts.sim"]),
        ("nightwire directory add stream x --owner ", ["ann"]),
        ("nightwire directory remove broker ", ["o'hara"]),
        ("nightwire user remove ", ["ann"]),
        ("nightwire broker revoke ant", ["antares"]),
        ("nightwire filter show \u2019; ", []),
    ],
)
def test_names_are_those_of_the_directory(line: str, names: list[str]) -> None:
    assert offered(line) == names


def test_verbs_are_offered_without_an_import_and_surveys_without_a_directory() -> None:
    assert offered("nightwire sub") == ["subscribe"]
    assert offered("nightwire simulate --se") == ["--seed"]
    assert "lsst" in offered("nightwire replay --survey l")


def test_nothing_is_said_where_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", NOBODY)
    monkeypatch.setenv("NIGHTWIRE_DIRECTORY", f"http://127.0.0.1:{free_port()}")
    code = "from nightwire.core.cli import main; main(prog_name='nightwire')"
    env = {"_NIGHTWIRE_COMPLETE": "bash_complete", "COMP_WORDS": "nightwire subscribe ", "COMP_CWORD": "2"}
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("\n", "")


@pytest.mark.kafka
def test_without_a_directory_kafkas_topics_tell_the_names(
    kafka: str, monkeypatch: pytest.MonkeyPatch, fresh_topic: Callable[..., str]
) -> None:
    monkeypatch.delenv("NIGHTWIRE_DIRECTORY", raising=False)
    ensure_topics(kafka, [settings("filter.dora.bright"), settings("requests.dora")])
    at = f"--bootstrap {kafka}"
    assert offered(f"nightwire subscribe {at} filter.dora.") == ["filter.dora.bright"]
    assert offered(f"nightwire filter show {at} --owner dora ") == ["bright"]
    assert offered(f"nightwire filter show {at} --owner do") == ["dora"]
    assert offered(f"nightwire offsets show {at} ") == []
