"""Where subscribers stopped: kept in Kafka, so that they may return to any gateway on it."""

import logging
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from nightwire.core.kafka import DeliveryError, Writer, headers_of, read_to_end
from nightwire.core.runtime import now_ms
from nightwire.gateway.eventlog.event import Positions
from nightwire.schemas import DecodeError
from nightwire.schemas.records import POSITION
from nightwire.schemas.topics import VTP_POSITIONS

log = logging.getLogger(__name__)

INTERVAL = 1.0
"""Time between writes. [s]"""

Peer = tuple[str, str]
"""Name of the feed; IVOID of the subscriber, or its address where it gave none."""


@dataclass(frozen=True)
class KafkaClients:
    """What the book talks to Kafka with.

    Attributes:
        bootstrap: Kafka's address.
        make_reader: Returns a consumer of its own.
        make_writer: Returns a new writer; asked again after one failed.
    """

    bootstrap: str
    make_reader: Callable[[], Consumer]
    make_writer: Callable[[], Writer]


class PositionStore:
    """Keep positions of subscribers in the compacted topic, and know those that other gateways keep.

    Args:
        clients: The way to Kafka.
        log_identity: Of which log positions are; those of another one are not believed.
    """

    def __init__(self, clients: KafkaClients, log_identity: str) -> None:
        self._clients, self._log_identity = clients, log_identity
        self._me = os.urandom(8)
        self._known: dict[Peer, Positions] = {}
        self._owner: dict[Peer, int] = {}
        self._changed: dict[Peer, Positions] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._next = 0
        self._thread = threading.Thread(target=self._run, name="positions", daemon=True)

    def load(self) -> None:
        """Read what is there, and begin to follow.  Blocks.

        Raises:
            KafkaException: Kafka does not answer.
        """
        for message in read_to_end(self._clients.bootstrap, [VTP_POSITIONS]):
            self._note(message)
        self._thread.start()

    def claim(self, peer: Peer, session: int) -> Positions | None:
        """Return where *peer* stopped, None for one that is not known; from now on *session* says it.

        An older connection of the same peer, which it may have forgotten, has no say any more.
        """
        with self._lock:
            self._owner[peer] = session
            return self._changed.get(peer) or self._known.get(peer)

    def store(self, peer: Peer, session: int, positions: Positions) -> None:
        """Keep *positions* as those of *peer*, if *session* is the one that says."""
        with self._lock:
            if self._owner.get(peer) == session and self._known.get(peer) != positions:
                self._known[peer] = self._changed[peer] = positions

    def close(self, timeout: float) -> None:
        """Write what is left.  Blocks, at most *timeout* [s]."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def _run(self) -> None:
        reader = self._clients.make_reader()
        reader.assign([TopicPartition(VTP_POSITIONS, 0, self._next)])
        writer: Writer | None = None
        while not self._stop.is_set():
            self._follow(reader)
            writer = self._write(writer)
        reader.close()
        self._write(writer)

    def _follow(self, reader: Consumer) -> None:
        try:
            for message in reader.consume(500, INTERVAL):
                if message.error() is None and headers_of(message).get("instance") != self._me:
                    self._note(message)
        except KafkaException as error:
            log.warning("positions that other gateways keep cannot be read: %s", error)

    def _write(self, writer: Writer | None) -> Writer | None:
        """Write what changed; return the writer to go on with."""
        with self._lock:
            changed, self._changed = self._changed, {}
        try:
            writer = writer or self._clients.make_writer()
            for peer, positions in changed.items():
                value = POSITION.encode(to_record(peer, positions, self._log_identity))
                key = "/".join(peer).encode()
                writer.write(VTP_POSITIONS, value, key=key, headers=[("instance", self._me)])
            writer.flush()
        except DeliveryError as error:
            log.warning("positions of subscribers are not in Kafka yet, trying again: %s", error)
            with self._lock:
                self._changed = {**changed, **self._changed}
            return None
        return writer

    def _note(self, message: Message) -> None:
        self._next = (message.offset() or 0) + 1
        try:
            found = POSITION.decode(message.value() or b"")
        except DecodeError as error:
            log.warning("%s@%d is no position: %s", VTP_POSITIONS, message.offset() or 0, error)
            return
        if found["log"] == self._log_identity:
            with self._lock:
                self._known[found["feed"], found["peer"]] = from_record(found)


def to_record(peer: Peer, positions: Positions, log_identity: str) -> dict[str, object]:
    """Return the POSITION record that says where *peer* is."""
    rows = [
        {"topic": topic, "partition": partition, "offset": offset}
        for (topic, partition), offset in sorted(positions.items())
    ]
    return {"feed": peer[0], "peer": peer[1], "log": log_identity, "positions": rows, "written": now_ms()}


def from_record(record: Mapping[str, Any]) -> Positions:
    """Return the positions in a POSITION record."""
    return {(row["topic"], row["partition"]): row["offset"] for row in record["positions"]}
