"""Topics that a condition on the directory chooses."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from nightwire.consumers.cli.topics_where import ABSENT, NoDirectoryError, TopicsWhere
from nightwire.core.cli import main
from nightwire.core.kafka import ensure_topics
from nightwire.core.runtime import free_port
from nightwire.directory import find
from nightwire.directory.model import SiteRows, View
from nightwire.schemas.topics import DIRECTORY, settings
from tests._directory import directory_of, directory_on

HERE = "127.0.0.1:1"
"""An address at which no Kafka is asked for anything."""

Encode = Callable[..., bytes]
Write = Callable[..., None]


def know(rows: SiteRows, *topics: str) -> None:
    with rows.batch():
        rows.set_topics((topic, 1, 1.0, 1000, None) for topic in topics)


@pytest.fixture
def view() -> Iterator[View]:
    view = View()
    yield view
    view.close()


@pytest.fixture
def site(view: View, monkeypatch: pytest.MonkeyPatch) -> Iterator[SiteRows]:
    """Yield the rows of a site whose directory is served."""
    rows = SiteRows(view, "local", HERE)
    with directory_of(view, HERE) as url:
        monkeypatch.setenv("NIGHTWIRE_DIRECTORY", url)
        yield rows


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["subscribe", *words, "--bootstrap", HERE])


def test_topics_come_and_go_with_the_answer(site: SiteRows, capsys: pytest.CaptureFixture[str]) -> None:
    know(site, "alerts.sim", "filter.ann.bright", "filter.bob.faint")
    chosen = TopicsWhere("kind = 'filter' -- of whomever", HERE)
    assert chosen() == ["filter.ann.bright", "filter.bob.faint"]
    know(site, "alerts.sim", "filter.bob.faint", "filter.cid.new")
    for _ in range(ABSENT - 1):
        chosen._note(chosen._ask())
    assert "filter.ann.bright" in chosen()  # the directory may not know it yet
    chosen._note(chosen._ask())
    assert chosen() == ["filter.bob.faint", "filter.cid.new"]
    assert capsys.readouterr().err.splitlines() == [
        "chosen: filter.ann.bright",
        "chosen: filter.bob.faint",
        "chosen: filter.cid.new",
        "no longer chosen: filter.ann.bright",
    ]


def test_what_lies_at_another_site_is_left_out_and_said(
    site: SiteRows, view: View, capsys: pytest.CaptureFixture[str]
) -> None:
    know(site, "alerts.sim")
    know(SiteRows(view, "chile", "chile:9092"), "alerts.sim", "alerts.lsst")
    assert TopicsWhere("kind = 'stream'", HERE)() == ["alerts.sim"]
    told = "left out: topics of chile; --bootstrap chile:9092 reads there"
    assert capsys.readouterr().err.splitlines() == [told, "chosen: alerts.sim"]


@pytest.mark.parametrize("condition", ["kin = 'filter'", "1; DROP TABLE entries", "(", ""])
def test_a_wrong_condition_is_refused_with_the_directorys_words(site: SiteRows, condition: str) -> None:
    result = run("--where", condition)
    assert result.exit_code == 2
    assert "/query refuses: SQL: " in result.output


def test_nothing_chosen_is_an_error_where_nothing_is_followed(site: SiteRows) -> None:
    result = run("--where", "owner = 'nobody'", "--no-follow")
    assert (result.exit_code, result.output) == (
        1,
        "Error: the directory knows no topic where owner = 'nobody'\n",
    )


def test_where_no_directory_answers_the_way_to_one_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NIGHTWIRE_DIRECTORY", raising=False)
    assert "`nightwire directory serve`" in run("--where", "1").output
    monkeypatch.setenv("NIGHTWIRE_DIRECTORY", f"http://127.0.0.1:{free_port()}")
    with pytest.raises(NoDirectoryError, match=r"nobody answers at .*`nightwire directory serve`"):
        TopicsWhere("1", HERE)


@pytest.fixture
def followed(kafka: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield a real Kafka whose directory is served."""
    ensure_topics(kafka, [settings(DIRECTORY)])
    with directory_on(kafka) as url:
        monkeypatch.setenv("NIGHTWIRE_DIRECTORY", url)
        monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", kafka)
        yield kafka


def make(kafka: str, topic: str) -> str:
    ensure_topics(kafka, [settings(topic)])
    return topic


@pytest.mark.kafka
@pytest.mark.parametrize("grouped", [False, True])
def test_a_topic_that_appears_later_is_read_whole(
    followed: str, encode: Encode, write: Write, tmp_path: Path, grouped: bool
) -> None:
    owner = f"ann-{os.urandom(4).hex()}"
    first = make(followed, f"filter.{owner}.first")
    write(followed, first, [encode(1)])
    where = ("--where", f"kind='filter' and owner='{owner}'", "--since", "1h", "--limit", "3")
    group = ("--group", f"{owner}.g") if grouped else ()
    command = [sys.executable, "-m", "nightwire.core.cli", "subscribe", *where, *group, "--format", "json"]
    with (tmp_path / "said").open("w+") as said:
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, text=True)
        with child:
            assert child.stdout is not None
            lines = [child.stdout.readline()]
            second = make(followed, f"filter.{owner}.second")
            write(followed, second, [encode(2), encode(3)])
            lines += child.stdout
        said.seek(0)
        told = said.read().splitlines()
    assert child.returncode == 0, told
    assert [json.loads(line)["alert"]["diaSourceId"] for line in lines] == [1, 2, 3], told
    assert told[:2] == [f"chosen: {first}", f"chosen: {second}"]
    assert told[-1].startswith(f"3 alerts from topics where kind='filter' and owner='{owner}' in ")


@pytest.mark.kafka
def test_who_follows_is_listed_until_it_ends(followed: str) -> None:
    topic, group = make(followed, f"filter.cid-{os.urandom(4).hex()}.one"), f"g-{os.urandom(4).hex()}"
    command = [sys.executable, "-m", "nightwire.core.cli", "subscribe", topic, "--group", group]
    state = f"SELECT topic, state FROM peers WHERE kind = 'consumer' AND name = '{group}'"  # noqa: S608
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while find(state).rows != [(topic, "live")]:
            assert child.poll() is None
    finally:
        child.terminate()
        child.wait(60)
    while find(state).rows != [(topic, "gone")]:
        pass  # until its goodbye was read


@pytest.mark.kafka
def test_an_answer_is_subscribed_to(followed: str, encode: Encode, write: Write) -> None:
    owner = f"bob-{os.urandom(4).hex()}"
    write(followed, make(followed, f"filter.{owner}.one"), [encode(1), encode(2)])
    sql = f"SELECT topic, bootstrap, registry FROM channels WHERE owner = '{owner}'"  # noqa: S608
    while not (answer := find(sql)).rows:
        pass  # until its witnesses have looked: five times a second
    with answer.subscribe(follow=False) as reader:
        assert [one.alert["diaSourceId"] for one in reader] == [1, 2]
