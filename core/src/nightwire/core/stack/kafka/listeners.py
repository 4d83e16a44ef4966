"""Kafka's listeners beside the one that its template has, as settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

LOOPBACK = "127.0.0.1"
SASL_PLAINTEXT, SASL_SSL = "SASL_PLAINTEXT", "SASL_SSL"


@dataclass(frozen=True)
class Listener:
    """Where Kafka listens, and whom it lets in there.

    Attributes:
        name: Of the listener, such as ``PUBLIC``.
        address: ``HOST:PORT`` on which it listens.
        advertised: By what clients reach it; empty: by `address`.
        protocol: SASL_PLAINTEXT or SASL_SSL.
        mechanisms: By which clients authenticate.
        settings: Of its own, without the listener's prefix.
    """

    name: str
    address: str
    mechanisms: Sequence[str]
    advertised: str = ""
    protocol: str = SASL_PLAINTEXT
    settings: Mapping[str, object] = field(default_factory=dict)

    def properties(self) -> dict[str, object]:
        """Return Kafka's settings of this listener alone."""
        found = {"sasl.enabled.mechanisms": ",".join(self.mechanisms), **self.settings}
        return {f"listener.name.{self.name.lower()}.{name}": value for name, value in found.items()}


def listening(client: Listener, controller: int, others: Sequence[Listener]) -> dict[str, object]:
    """Return Kafka's settings of all its listeners: that of the stack's processes first."""
    every = (client, *others)
    inside = f"CONTROLLER://{LOOPBACK}:{controller}"
    protocols = [f"{one.name}:{one.protocol}" for one in every]
    joint: dict[str, object] = {
        "listeners": ",".join([*(f"{one.name}://{one.address}" for one in every), inside]),
        "advertised.listeners": ",".join(f"{one.name}://{one.advertised or one.address}" for one in every),
        "listener.security.protocol.map": ",".join([*protocols, f"CONTROLLER:{SASL_PLAINTEXT}"]),
    }
    for one in every:
        joint |= one.properties()
    return joint
