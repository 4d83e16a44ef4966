"""Where another site is, and by whose rights it is read."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from nightwire.core.kafka import properties
from nightwire.schemas import MendableError

PREFIX = "NIGHTWIRE_SITE_{}_KAFKA_"
"""Begins variables with librdkafka's properties for a site; ``KAFKA_*`` are for our own."""
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
    """A site is not named as it has to be."""


@dataclass(frozen=True)
class SiteAddress:
    """Another site's Kafka.

    Attributes:
        address: ``HOST:PORT[,HOST:PORT…]``
        name: What the site has to be called; empty: what it calls itself.
        rights: librdkafka's properties of who reads it: only where our operator named the address.
    """

    address: str
    name: str = ""
    rights: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def parse(cls, text: str, env: Mapping[str, str] = os.environ) -> "SiteAddress":
        """Return what ``[NAME=]HOST:PORT`` says; rights of NAME are in the environment.

        Raises:
            SiteAddressError: It says nothing of the kind.
        """
        name, equals, address = text.rpartition("=")
        if not is_address(address) or (equals and not name):
            raise SiteAddressError(f"{text!r} is not [NAME=]HOST:PORT")
        prefix = PREFIX.format(re.sub(r"\W", "_", name).upper())
        return cls(address, name, properties(env, prefix) if name else {})

    @property
    def client(self) -> dict[str, object]:
        """All of librdkafka's properties for it but the address."""
        return {**CLIENT, **self.rights}


def is_address(text: object) -> bool:
    """Return whether *text* is ``HOST:PORT[,HOST:PORT…]``."""
    return isinstance(text, str) and len(text) <= MAX_ADDRESS and all(map(ADDRESS.fullmatch, text.split(",")))
