"""A directory in a process of its own, for tests."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx

from nightwire.core.kafka import ensure_topics
from nightwire.core.stack import free_port
from nightwire.schemas.topics import DIRECTORY, FILTERS, settings
from tests._waiting import until

PATIENCE = 120.0
"""Longest wait for anything. [s]"""


class Directory:
    """The directory's process.

    Args:
        bootstrap: Kafka's address.
        folder: Where its log goes.
        words: Further options.
        environment: Its environment; None for ours.
    """

    def __init__(
        self, bootstrap: str, folder: Path, *words: str, environment: dict[str, str] | None = None
    ) -> None:
        self.bootstrap, self.port, self._page = bootstrap, free_port(), free_port()
        command = [sys.executable, "-m", "nightwire.core.cli", "directory", "serve", "--bootstrap", bootstrap]
        command += ["--port", str(self.port), "--metrics-port", str(self._page), *words]
        self.log = folder / f"directory-{self.port}.log"
        with self.log.open("wb") as out:
            self.child = subprocess.Popen(command, stdout=out, stderr=out, env=environment)
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=60)
        until(lambda: self._get(self._page, "/health").status_code == 200, "the directory is healthy")

    @classmethod
    def on(cls, kafka: str, folder: Path, *words: str) -> "Directory":
        """Return the directory of a Kafka, which has the topics then."""
        ensure_topics(kafka, [settings(DIRECTORY), settings(FILTERS)])
        return cls(kafka, folder, *words)

    def ask(self, sql: str, **more: Any) -> Any:
        """Return the rows of *sql*."""
        answer = self.http.post("/query", json={"sql": sql}, **more)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def state(self, name: str) -> str | None:
        """Return the state of a process."""
        rows = self.ask(f"SELECT state FROM processes WHERE name = '{name}'")  # noqa: S608
        return rows[0]["state"] if rows else None

    def metrics(self) -> str:
        """Return its page of metrics."""
        return self._get(self._page, "/metrics").text

    def stop(self, number: int = signal.SIGTERM) -> None:
        """End it."""
        self.http.close()
        self.child.send_signal(number)
        self.child.wait(60)

    def _get(self, port: int, path: str) -> httpx.Response:
        return httpx.get(f"http://127.0.0.1:{port}{path}", timeout=10)
