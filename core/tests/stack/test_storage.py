"""Kafka's storage, formatted from what Kafka's own tool wrote the first time."""

from pathlib import Path

import pytest

from nightwire.core.stack import Broker, free_port
from nightwire.core.stack.kafka.broker import kafka_archive
from nightwire.core.stack.kafka.storage import CHECKPOINT, META, format_storage


def names(folder: Path) -> dict[str, str]:
    lines = (folder / META).read_text().splitlines()
    return dict(line.split("=") for line in lines if not line.startswith("#"))


def forbidden(cluster: str) -> None:
    raise AssertionError(cluster)


def test_a_storage_from_the_kept_checkpoint_has_names_of_its_own(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_bytes(b"features")
    found = []
    for folder in (tmp_path / "one", tmp_path / "two"):
        format_storage(folder, kept, forbidden)
        assert {path.name: path.read_bytes() for path in folder.iterdir()}.pop(CHECKPOINT) == b"features"
        assert sorted(path.name for path in folder.iterdir()) == [CHECKPOINT, META]
        found.append(names(folder))
    one, two = found
    assert (one["version"], one["node.id"]) == ("1", "1")
    assert len({one["cluster.id"], one["directory.id"], two["cluster.id"], two["directory.id"]}) == 4


def test_a_storage_that_was_formatted_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / META).write_text("cluster.id=mine\n")
    format_storage(tmp_path, tmp_path / "kept", forbidden)
    assert [path.name for path in tmp_path.iterdir()] == [META]
    assert names(tmp_path) == {"cluster.id": "mine"}


@pytest.mark.kafka
def test_kafkas_tool_writes_the_same_and_its_checkpoint_is_kept(tmp_path: Path) -> None:
    broker = Broker(tmp_path / "kafka", port=free_port(), controller=free_port())
    broker.prepare()
    ours, theirs, kept = tmp_path / "kafka" / "data", tmp_path / "theirs", tmp_path / "kept"

    def by_java(cluster: str) -> None:
        settings = tmp_path / "kafka" / "server.properties"
        settings.write_text(settings.read_text().replace(str(ours), str(theirs)))
        broker._format(cluster)

    format_storage(theirs, kept, by_java)
    assert kept.read_bytes() == (theirs / CHECKPOINT).read_bytes()
    assert sorted(path.name for path in ours.iterdir()) == sorted(path.name for path in theirs.iterdir())
    assert set(names(ours)) == set(names(theirs))
    assert len(kafka_archive().with_suffix(".checkpoint").read_bytes()) == len(kept.read_bytes())
