"""Archives of Java's classes: kept where they are recorded, found where nothing changed."""

import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from nightwire.core.runtime import java_classes, java_home


@pytest.fixture
def jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return what a program might be made of; archives go into a folder of our own."""
    monkeypatch.setattr(java_classes, "user_cache_path", lambda _name: tmp_path / "cache")
    (tmp_path / "a.jar").write_bytes(b"a")
    return [tmp_path / "a.jar"]


def test_an_archive_that_is_not_there_gives_no_option(jars: list[Path]) -> None:
    assert java_classes.options(java_classes.archive("program", jars)) == ()


def test_another_jar_is_another_archive(jars: list[Path]) -> None:
    before = java_classes.archive("program", jars)
    assert java_classes.archive("program", jars) == before
    jars[0].write_bytes(b"another")
    assert java_classes.archive("program", jars) != before


@pytest.mark.slow
def test_what_was_recorded_is_used_and_what_nobody_uses_goes(jars: list[Path]) -> None:
    def run(options: Sequence[str]) -> None:
        _java(options)

    older, other = (java_classes.archive(name, []) for name in ("older", "other"))
    assert java_classes.record(older, run)
    assert java_classes.record(other, run)
    long_ago = time.time() - java_classes.KEPT - 1
    os.utime(older, (long_ago, long_ago))
    archive = java_classes.archive("program", jars)
    assert java_classes.record(archive, run)
    assert set(archive.parent.iterdir()) == {archive, other}
    (option,) = java_classes.options(archive)
    assert "shared objects file (top)" in _java([option, "-Xlog:class+load:stdout"])


def test_a_program_that_fails_leaves_nothing(jars: list[Path]) -> None:
    def run(_options: Sequence[str]) -> None:
        raise RuntimeError("it fell over")

    archive = java_classes.archive("program", jars)
    with pytest.raises(RuntimeError, match="fell over"):
        java_classes.record(archive, run)
    assert list(archive.parent.iterdir()) == []


def _java(options: Sequence[str]) -> str:
    """Return what Java says when it lists its modules."""
    command = [str(java_home() / "bin" / "java"), *options, "--list-modules"]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
