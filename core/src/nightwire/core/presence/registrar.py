"""A process registers in the topic ``directory``, keeps saying that it lives, and says goodbye.

It never waits for Kafka, and nothing that Kafka does or does not do reaches the process.
"""

import json
import logging
import os
import socket
import threading
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from confluent_kafka import KafkaException

from nightwire.core.kafka import producer
from nightwire.core.runtime import site_name
from nightwire.schemas import MendableError, records
from nightwire.schemas.topics import DIRECTORY

log = logging.getLogger("nightwire.presence")

HEARTBEAT = 2.0
"""Time between two heartbeats. [s]"""
GOODBYE = 1.0
"""Longest wait at the end for Kafka to take the goodbye. [s]"""
MAX_NAME = 200
"""Longest name. [character]"""
MAX_CAPABILITIES = 64 << 10
"""Longest capabilities, as JSON. [byte]"""
EVERYWHERE = frozenset({"0.0.0.0", "::"})  # noqa: S104  (what a container listens on)
KINDS = frozenset(
    {"site", "neighbour", "survey", "stream", "filter", "feed", "producer", "consumer", "broker", "process"}
)
"""What an entry can be; a neighbour is another site that this one knows."""


class EntryError(MendableError):
    """An entry cannot stand in the directory; the message says why."""


def entry(
    kind: str, name: str, *, capabilities: Mapping[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    """Return an entry of this site, for `records.ENTRY`.

    Args:
        kind: One of `KINDS`.
        name: Unique among its kind at this site.
        capabilities: What else it says of itself.
        more: Further fields of the record.

    Raises:
        EntryError: Kind, name or capabilities cannot be.
    """
    found = {"site": site_name(), "kind": kind, "name": name, **more}
    found["capabilities"] = json.dumps(dict(capabilities or {}))
    check_entry(found)
    return found


def check_entry(found: Mapping[str, Any]) -> None:
    """Do nothing where *found* can stand in the directory.

    Raises:
        EntryError: It cannot.
    """
    if why := wrong_name(found, sorted(KINDS), ("site", "name")):
        raise EntryError(why)
    if (size := len(found["capabilities"].encode(errors="replace"))) > MAX_CAPABILITIES:
        raise EntryError(f"capabilities have {size} bytes, the limit is {MAX_CAPABILITIES}")
    try:
        said = json.loads(found["capabilities"], parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise EntryError(f"capabilities are no JSON: {error}") from error
    if not isinstance(said, dict):
        raise EntryError("capabilities are no JSON object")


def wrong_name(found: Mapping[str, Any], kinds: Sequence[str], names: Iterable[str]) -> str | None:
    """Return why a record cannot stand in a log that is keyed by names; None where it can.

    Args:
        found: The record.
        kinds: What its field ``kind`` may be.
        names: Its fields that are names.
    """
    if found["kind"] not in kinds:
        return f"{str(found['kind'])[:40]!r} is no kind; there are {', '.join(kinds)}"
    for what in names:
        text = found[what]
        if not 0 < len(text) <= MAX_NAME or not text.isprintable() or "/" in text:
            return f"{text[:40]!r} is no {what}: 1 to {MAX_NAME} printable characters, no '/'"
    return None


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number of JSON")


def entry_key(found: Mapping[str, Any]) -> str:
    """Return the Kafka key of an entry."""
    return f"{found['site']}/{found['kind']}/{found['name']}"


class Presence:
    """Tells the directory of the Kafka at *bootstrap* that somebody lives.

    Args:
        bootstrap: ``HOST:PORT[,HOST:PORT…]``.
        kind: One of `KINDS`.
        name: Unique among its kind at this site.
        more: Further fields of the entry.

    Raises:
        EntryError: The entry cannot be.
    """

    def __init__(self, bootstrap: str, kind: str, name: str, **more: Any) -> None:
        self._entry = entry(kind, name, instance=uuid.uuid4().hex, interval=HEARTBEAT, **more)
        # an old heartbeat is worth nothing, and who has no right to speak is to hear nothing of it
        brief: dict[str, Any] = {
            "enable_idempotence": False,
            "delivery_timeout_ms": 5000,
            "linger_ms": 0,
            "max_in_flight": 1,
        }
        self._client = producer(bootstrap, **brief)

    def beat(self, *, ended: bool = False) -> None:
        """Say that it lives, or that it *ended*."""
        found = {**self._entry, "ended": ended}
        try:
            self._client.produce(DIRECTORY, records.ENTRY.encode(found), entry_key(found), partition=0)
            self._client.poll(0)
        except (BufferError, KafkaException) as error:  # the next heartbeat says it again
            log.debug("not said to the directory: %s", error)

    def goodbye(self) -> None:
        """Say that it ended, and wait a moment for Kafka to take that."""
        self.beat(ended=True)
        self._client.flush(GOODBYE)


@contextmanager
def registered(bootstrap: str, name: str, *, kind: str = "process", **more: Any) -> Iterator[None]:
    """Keep the process *name* in the directory of the Kafka at *bootstrap* within the block.

    Args:
        bootstrap: ``HOST:PORT[,HOST:PORT…]``.
        name: What people call the process.
        kind: What it is instead.
        more: Further fields of its entry.

    Raises:
        EntryError: The entry cannot be.
    """
    presence, leave = Presence(bootstrap, kind, name, **more), threading.Event()

    def beat() -> None:
        presence.beat()
        while not leave.wait(HEARTBEAT):
            presence.beat()

    thread = threading.Thread(target=beat, name="presence", daemon=True)
    thread.start()
    try:
        yield
    finally:
        leave.set()
        thread.join(GOODBYE)
    presence.goodbye()  # who fails says none, and is missed


def reached_at(host: str, port: int) -> str:
    """Return the ``HOST:PORT`` at which others of the site reach what listens on *host*."""
    named = socket.gethostname() if host in EVERYWHERE else host
    return f"[{named}]:{port}" if ":" in named else f"{named}:{port}"


def metrics_at(port: int, **pages: str) -> dict[str, str]:
    """Return the endpoints of a page of metrics, by which Prometheus finds it; none for port 0.

    Args:
        port: Of the page.
        pages: Paths of further pages there, by Prometheus' job.
    """
    at = reached_at(os.environ.get("NIGHTWIRE_METRICS_HOST", "127.0.0.1"), port)
    found = {"metrics": at} | {f"metrics:{job}": at + path for job, path in pages.items()}
    return found if port else {}
