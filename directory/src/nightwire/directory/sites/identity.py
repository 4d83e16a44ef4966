"""The identity that a Kafka claims in its own log, and its check."""

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from nightwire.core.kafka import consumer, end_offsets, read_until
from nightwire.directory.ingest import MALFORMED, entry_of
from nightwire.directory.model import GONE
from nightwire.directory.sites.address import SiteAddress
from nightwire.schemas.topics import DIRECTORY

TIMEOUT = 5.0
"""Longest wait for the next answer. [s]"""
READ_TIMEOUT = 30.0
"""Longest reading of a log. [s]"""
MAX_CLAIMS = 100
"""Most names that are kept of one Kafka."""


class SiteRefusedError(Exception):
    """A Kafka is not the site that it claims to be; the message says which claims collide."""


@dataclass
class ClusterIdentity:
    """The names that a Kafka's own log claims for its site.

    Attributes:
        cluster: Kafka's id.
        newest: When its newest record was appended. [ms since 1970]
        claims: Entries of a site in that site's own name, by name, and when they were appended.
    """

    cluster: str
    newest: int = 0
    claims: dict[str, tuple[int, dict[str, Any]]] = field(default_factory=dict)

    def add_record(self, key: str, value: bytes | None, appended: int) -> None:
        """Add a record of the log."""
        self.newest = max(self.newest, appended)
        name, _, rest = key.partition("/")
        if rest == f"site/{name}":
            self.claims.pop(name, None)
            with suppress(*MALFORMED):
                if value and len(self.claims) < MAX_CLAIMS:
                    self.claims[name] = (appended, entry_of(key, value))

    def resolve_name(self, expected: str = "") -> str:
        """Return the site's name: the *expected* one, else the only one with a live directory.

        Raises:
            SiteRefusedError: It has no such name, or several.
        """
        names = {one for one, claim in self.claims.items() if self._is_alive(*claim)} or {*self.claims}
        if expected in self.claims or (len(names) == 1 and not expected):
            return expected or names.pop()
        known = ", ".join(map(repr, sorted(names)[:5]))
        if expected:
            raise SiteRefusedError(f"it is called {known}, not {expected!r}")
        raise SiteRefusedError(f"it is called {known}: say which, by NAME=HOST:PORT")

    def endpoint(self, name: str, what: str) -> str:
        """Return the endpoint *what* of the site *name*; empty for none."""
        return str(self.claims[name][1]["endpoints"].get(what, ""))

    def _is_alive(self, appended: int, found: Mapping[str, Any]) -> bool:
        return not found["ended"] and self.newest - appended <= GONE * 1000


def identify(where: SiteAddress) -> ClusterIdentity:
    """Return the identity of the Kafka at *where*, read from its log.

    Raises:
        KafkaException: It cannot be reached, refuses us, or nobody has registered there yet.
    """
    with consumer(where.address, client=where.client, enable_partition_eof=True) as reader:
        found = ClusterIdentity(reader.list_topics(timeout=TIMEOUT).cluster_id or "")
        _read(reader, found)
    if not found.claims or not found.cluster:
        raise KafkaException(
            KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART, "no directory has registered there")
        )
    return found


def _read(reader: Consumer, found: ClusterIdentity) -> None:
    ends, deadline = end_offsets(reader, [DIRECTORY]), time.monotonic() + READ_TIMEOUT
    reader.assign([TopicPartition(*partition, OFFSET_BEGINNING) for partition in ends])
    for message in read_until(reader, ends, patience=TIMEOUT):
        key = (message.key() or b"").decode(errors="replace")
        found.add_record(key, message.value(), message.timestamp()[1])
        if time.monotonic() > deadline:
            why = f"its log has no end for {READ_TIMEOUT:g} s"
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, why))


def check_claim(name: str, cluster: str, bound: Mapping[str, str]) -> None:
    """Check that the Kafka *cluster* may be the site *name*.

    Args:
        name: The claimed name.
        cluster: The Kafka's id.
        bound: The Kafka of each known name, our own among them.

    Raises:
        SiteRefusedError: The name is another Kafka's, or the Kafka has another name.
    """
    if (holder := bound.get(name, cluster)) != cluster:
        raise SiteRefusedError(f"the Kafka {cluster} says it is {name!r}, which is the Kafka {holder}")
    if other := next((one for one, held in bound.items() if held == cluster and one != name), ""):
        raise SiteRefusedError(f"the Kafka {cluster} says it is {name!r}, and is {other!r}")
