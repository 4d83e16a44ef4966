"""Where subscribers stopped: kept in Kafka, so that they may return to any gateway on it."""

import logging
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from nightwire.core.kafka import DeliveryError, Writer, headers_of, read_to_end
from nightwire.core.runtime import now_ms
from nightwire.gateway.eventlog.event import Positions
from nightwire.gateway.fanout.identity import Peer, read_peer
from nightwire.schemas import DecodeError
from nightwire.schemas.records import POSITION
from nightwire.schemas.topics import VTP_POSITIONS

log = logging.getLogger(__name__)

INTERVAL = 1.0
"""Time between writes. [s]"""
MAX_PEERS = 10_000
"""Most subscribers that are remembered; beyond, those that were away longest are forgotten."""


class Namesake(Enum):
    """Another connection that has the name of one that comes: whose it is, and what is told."""

    OWN = "an older connection of yours has the name {name}: only this one's position is kept now"
    OTHER = "somebody else has the name {name}, too; each has a position of his own"


class Claim(NamedTuple):
    """What a subscriber finds that says who it is.

    Attributes:
        positions: Where it stopped; None for an unknown one.
        namesake: Who else has its name now; None: nobody.
    """

    positions: Positions | None
    namesake: Namesake | None


@dataclass(frozen=True)
class KafkaClients:
    """What makes the store's clients of Kafka.

    Attributes:
        bootstrap: Kafka's address.
        make_reader: Returns a consumer of its own.
        make_writer: Returns a new writer; asked again after one failed.
    """

    bootstrap: str
    make_reader: Callable[[], Consumer]
    make_writer: Callable[[], Writer]


class PositionStore:
    """Keep positions of subscribers in the compacted topic; know those of other gateways.

    Peers call themselves what they like, so there is a limit: where there are more, the one whose
    position was not written for longest is forgotten, with a tombstone; never one that is
    connected.

    Args:
        clients: The way to Kafka.
        log_identity: Of which log positions are; those of another one are not believed.
        max_peers: Most that are remembered.
    """

    def __init__(self, clients: KafkaClients, log_identity: str, max_peers: int = MAX_PEERS) -> None:
        self._clients, self._log_identity, self._max_peers = clients, log_identity, max_peers
        self._instance = os.urandom(8)
        self._known: dict[Peer, Positions] = {}  # the one that was not written for longest is first
        self._sessions: dict[Peer, int] = {}
        self._named: dict[tuple[str, str], set[int]] = {}
        self._changed: dict[Peer, Positions | None] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._next = 0
        self._thread = threading.Thread(target=self._run, name="positions", daemon=True)

    def load(self) -> None:
        """Read the topic, and begin to follow it.  Blocks.

        Raises:
            KafkaException: Kafka does not answer.
        """
        for message in read_to_end(self._clients.bootstrap, [VTP_POSITIONS]):
            self.note(message)
        self._thread.start()

    def claim(self, peer: Peer, session: int) -> Claim:
        """Return where *peer* stopped; from now on *session* moves its position.

        An older connection of the same peer, which it may have forgotten, does not count any more.
        One that is unknown begins where somebody of its name stopped before there were owners.
        """
        with self._lock:
            named = self._named.setdefault(peer[:2], set())
            others = (Namesake.OWN if peer in self._sessions else Namesake.OTHER) if named else None
            named.add(session)
            self._sessions[peer] = session
            return Claim(self._known.get(peer, self._known.get(peer._replace(owner=""))), others)

    def store(self, peer: Peer, session: int, positions: Positions) -> None:
        """Keep *positions* as those of *peer*, if *session* moves them."""
        with self._lock:
            if self._sessions.get(peer) == session and self._known.get(peer) != positions:
                self._changed[peer] = positions
                self._remember(peer, positions)

    def release(self, peer: Peer, session: int) -> None:
        """Note that *session* ended."""
        with self._lock:
            if self._sessions.get(peer) == session:
                del self._sessions[peer]
            named = self._named.get(peer[:2], set())
            named.discard(session)
            if not named:
                self._named.pop(peer[:2], None)

    def close(self, timeout: float) -> None:
        """Write what is left.  Blocks, at most *timeout* [s]."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def note(self, message: Message) -> None:
        """Take a record of the topic that another gateway wrote, or this one before its start."""
        self._next = (message.offset() or 0) + 1
        value = message.value()
        if value is None:
            self._note_tombstone(message.key() or b"")
            return
        try:
            found = POSITION.decode(value)
        except DecodeError as error:
            log.warning("%s@%d is no position: %s", VTP_POSITIONS, message.offset() or 0, error)
            return
        if found["log"] == self._log_identity:
            peer = Peer(found["feed"], found["peer"], found["owner"])
            with self._lock:
                if peer not in self._changed:  # ours is newer
                    self._remember(peer, from_record(found))

    def take_changed(self) -> dict[Peer, Positions | None]:
        """Return the positions to be written, None for a tombstone, and take them as written."""
        with self._lock:
            changed, self._changed = self._changed, {}
        return changed

    def _note_tombstone(self, key: bytes) -> None:
        peer = read_peer(key)
        with self._lock:
            if peer not in self._sessions:
                self._known.pop(peer, None)

    def _remember(self, peer: Peer, positions: Positions) -> None:
        self._known.pop(peer, None)
        self._known[peer] = positions
        if len(self._known) > self._max_peers:
            forgotten = next((one for one in self._known if one not in self._sessions), None)
            if forgotten is not None:
                del self._known[forgotten]
                self._changed[forgotten] = None

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
                if message.error() is None and headers_of(message).get("instance") != self._instance:
                    self.note(message)
        except KafkaException as error:
            log.warning("positions that other gateways keep cannot be read: %s", error)

    def _write(self, writer: Writer | None) -> Writer | None:
        """Write what changed; return the writer to go on with."""
        changed = self.take_changed()
        try:
            writer = writer or self._clients.make_writer()
            for peer, positions in changed.items():
                headers = [("instance", self._instance)]
                writer.write(VTP_POSITIONS, self._value(peer, positions), key=peer.key, headers=headers)
            writer.flush()
        except DeliveryError as error:
            log.warning("positions of subscribers are not in Kafka yet, trying again: %s", error)
            with self._lock:
                self._changed = {**changed, **self._changed}
            return None
        return writer

    def _value(self, peer: Peer, positions: Positions | None) -> bytes | None:
        if positions is None:
            return None
        return POSITION.encode(to_record(peer, positions, self._log_identity))


def to_record(peer: Peer, positions: Positions, log_identity: str) -> dict[str, object]:
    """Return the POSITION record of *peer*."""
    rows = [
        {"topic": topic, "partition": partition, "offset": offset}
        for (topic, partition), offset in sorted(positions.items())
    ]
    who = {"feed": peer.feed, "peer": peer.name, "owner": peer.owner}
    return {**who, "log": log_identity, "positions": rows, "written": now_ms()}


def from_record(record: Mapping[str, Any]) -> Positions:
    """Return the positions in a POSITION record."""
    return {(row["topic"], row["partition"]): row["offset"] for row in record["positions"]}
