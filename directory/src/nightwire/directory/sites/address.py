"""The address of another site's Kafka, and the credentials to read it."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from nightwire.core.kafka import properties
from nightwire.schemas import MendableError

PREFIX = "NIGHTWIRE_SITE_{}_KAFKA_"
"""Prefix of variables with librdkafka's properties for a site; ``KAFKA_*`` are our own."""
ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[\w.-]+):\d{1,5}")
MAX_ADDRESS = 1000
"""Longest address. [character]"""
CLIENT: Mapping[str, object] = {
    # a site that comes back is found in seconds, whatever TCP waits for
    "socket.timeout.ms": 10_000,
    "socket.connection.setup.timeout.ms": 5_000,
    # what a stranger sends takes little memory
    "queued.max.messages.kbytes": 1 << 10,
    "message.max.bytes": 1 << 20,
    "fetch.max.bytes": 1 << 20,
    "receive.message.max.bytes": 16 << 20,
    "fetch.wait.max.ms": 500,
}
"""librdkafka's properties for Kafkas of other sites."""


class SiteAddressError(MendableError):
    """A site's address is malformed."""


@dataclass(frozen=True)
class SiteAddress:
    """Another site's Kafka.

    Attributes:
        address: ``HOST:PORT[,HOST:PORT…]``
        name: The expected name of the site; empty: its own.
        credentials: librdkafka's properties of the reader; only of configured addresses.
    """

    address: str
    name: str = ""
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def parse(cls, text: str, env: Mapping[str, str] = os.environ) -> "SiteAddress":
        """Return the address ``[NAME=]HOST:PORT``; credentials of NAME are in the environment.

        Raises:
            SiteAddressError: It is malformed.
        """
        name, equals, address = text.rpartition("=")
        if not is_address(address) or (equals and not name):
            raise SiteAddressError(f"{text!r} is not [NAME=]HOST:PORT")
        prefix = PREFIX.format(re.sub(r"\W", "_", name).upper())
        return cls(address, name, properties(env, prefix) if name else {})

    @property
    def client(self) -> dict[str, object]:
        """All of librdkafka's properties for it but the address."""
        return {**CLIENT, **self.credentials}


def is_address(text: object) -> bool:
    """Return whether *text* is ``HOST:PORT[,HOST:PORT…]``."""
    return isinstance(text, str) and len(text) <= MAX_ADDRESS and all(map(ADDRESS.fullmatch, text.split(",")))
