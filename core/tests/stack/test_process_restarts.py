"""One process of the stack: started, started again, and asked for its health."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from nightwire.core.stack.process_restarts import ManagedProcess
from nightwire.core.stack.services import Service
from nightwire.core.stack.supervisor import KafkaProbe


async def always() -> bool:
    return True


async def until(true: Callable[[], bool]) -> None:
    """Wait until something is true; the test's own limit of time ends it."""
    while not true():
        await asyncio.sleep(0.02)


async def spawned_late(program: Path, logs: Path) -> ManagedProcess:
    service = Service("late", [str(program)], ready_timeout=60.0, stop_timeout=10.0)
    states: list[str] = []
    process = ManagedProcess(service, logs, always, lambda: states.append(process.state))
    starting = asyncio.create_task(process.start())
    await until(lambda: "restarting" in states)
    program.write_text(f"#!{sys.executable}\nimport signal; signal.pause()\n")
    program.chmod(0o755)
    await starting
    await process.stop()
    return process


@pytest.mark.slow
def test_a_process_that_cannot_be_spawned_is_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    process = asyncio.run(spawned_late(tmp_path / "program", tmp_path))
    assert process.restarts >= 1
    assert process.state == "stopped"
    assert "late could not be started: [Errno 2]" in caplog.text


def test_kafka_is_asked_by_one_client_for_ever() -> None:
    made: list[str] = []

    class Answers:
        """A Kafka that is away at first."""

        asked = 0

        def list_topics(self, timeout: float) -> Any:
            self.asked += 1
            if self.asked == 1:
                raise KafkaException(KafkaError(KafkaError._TRANSPORT))
            return SimpleNamespace(brokers={1: "one"})

    def connect(bootstrap: str) -> Any:
        made.append(bootstrap)
        return Answers()

    probe = KafkaProbe("here:9092", connect)
    assert [probe.answers() for _ in range(3)] == [False, True, True]
    assert made == ["here:9092"]
