"""Registration of processes that cannot register themselves, while their metrics page answers."""

import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import httpx

from nightwire.core.presence import HEARTBEAT, Presence
from nightwire.core.runtime import Stop
from nightwire.schemas import MendableError

log = logging.getLogger("nightwire.directory")

TIMEOUT = 1.5
"""Longest wait for a page. [s]"""


class WatchError(MendableError):
    """``--watch`` is malformed."""


@dataclass(frozen=True)
class WatchedProcess:
    """A process that is watched.

    Attributes:
        name: In the directory.
        endpoint: ``metrics``, or ``metrics:JOB`` for Prometheus' job.
        address: ``HOST:PORT[/PATH]`` of its metrics page.
    """

    name: str
    endpoint: str
    address: str

    @classmethod
    def parse(cls, text: str) -> "WatchedProcess":
        """Return the process ``NAME=HOST:PORT[/PATH]`` or ``NAME:JOB=…``.

        Raises:
            WatchError: It is malformed.
        """
        named, equals, address = text.partition("=")
        name, colon, job = named.partition(":")
        if not equals or not name or ":" not in address or (colon and not job):
            raise WatchError(f"{text!r} is not NAME=HOST:PORT[/PATH] or NAME:JOB=HOST:PORT[/PATH]")
        return cls(name, f"metrics:{job}" if job else "metrics", address)

    @property
    def url(self) -> str:
        """The URL of its metrics page."""
        return f"http://{self.address}" + ("" if "/" in self.address else "/metrics")


def watch(bootstrap: str, watched: WatchedProcess, stop: Stop) -> None:
    """Keep *watched* in the directory while its page answers, until told to *stop*."""
    presence = Presence(bootstrap, "process", watched.name, endpoints={watched.endpoint: watched.address})
    answered = True
    while True:
        if (answers := _answers(watched.url)) != answered:
            log.warning("%s %s at %s", watched.name, "answers" if answers else "does not answer", watched.url)
        answered = answers
        if answers:
            presence.beat()
        if stop.wait(HEARTBEAT):
            return


def _answers(url: str) -> bool:
    try:
        with httpx.stream("GET", url, timeout=TIMEOUT, trust_env=False) as response:
            return response.status_code < httpx.codes.INTERNAL_SERVER_ERROR
    except httpx.HTTPError:
        return False


def watch_all(bootstrap: str, all_watched: Sequence[WatchedProcess], stop: Stop) -> None:
    """Watch each in a thread of its own."""
    for watched in all_watched:
        threading.Thread(
            target=watch, args=(bootstrap, watched, stop), name=f"watch-{watched.name}", daemon=True
        ).start()
