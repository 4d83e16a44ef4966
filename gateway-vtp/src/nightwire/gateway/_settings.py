"""What a gateway is told at its start."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from nightwire.gateway._access import LOCAL
from nightwire.gateway._frames import COMET_MAX_FRAME, MAX_FRAME
from nightwire.gateway._handlers import HandlerSettings


@dataclass(frozen=True)
class Address:
    """A host and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def read_address(text: str, default_port: int) -> Address:
    """Return the address that *text* says: ``HOST``, ``HOST:PORT`` or ``[IPV6]:PORT``.

    Raises:
        ValueError: It is none of these.
    """
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port = text, str(default_port)
    if not port.isdigit() or not 0 <= int(port) < 1 << 16 or not host:
        raise ValueError(f"{text!r} is no HOST:PORT")
    return Address(host.strip("[]"), int(port))


@dataclass(frozen=True)
class SignatureSettings:
    """What the gateway was told of signatures.

    Attributes:
        required: Of whom they are required: authors, brokers, subscribers.
        keyring: Folder of the keys that are known; there where anything is required.
        policy: Table of who may sign for whom.
        key: File of our own secret key, which signs our answers to brokers.
        answer_timeout: Longest time that a subscriber may take over its answer. [s]
    """

    required: tuple[str, ...] = ()
    keyring: Path | None = None
    policy: Path | None = None
    key: Path | None = None
    answer_timeout: float = 20.0


@dataclass(frozen=True)
class GcnSettings:
    """What is read from GCN.

    Attributes:
        bootstrap: Address of its Kafka.
        topics: Patterns of the topics that are wanted, with ``*``.
        oldest: Whether the first start begins with the oldest record there is, not with what comes next.
        properties: librdkafka's properties, the secret among them.
    """

    bootstrap: str
    topics: tuple[str, ...]
    oldest: bool = False
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Settings:
    """The options of ``nightwire gateway serve``; times in seconds."""

    bootstrap: str
    authors: Address
    subscribers: Address
    state: Path
    ivorn: str = "ivo://nightwire/gateway"
    remotes: tuple[Address, ...] = ()
    remote_filters: tuple[str, ...] = ()
    feeds: tuple[str, ...] = ()
    registry: str | None = None
    author_allow: tuple[str, ...] = LOCAL
    subscriber_allow: tuple[str, ...] = LOCAL
    max_connections: int = 4096
    max_frame: int = MAX_FRAME
    subscriber_max_frame: int = COMET_MAX_FRAME
    author_timeout: float = 20.0
    iamalive: float = 60.0
    remote_timeout: float = 120.0
    remembered_days: float = 30.0
    accounts: bool = True
    ring_events: int = 20_000
    ring_bytes: int = 64 << 20
    handlers: HandlerSettings = field(default_factory=HandlerSettings)
    signatures: SignatureSettings = field(default_factory=SignatureSettings)
    gcn: GcnSettings | None = None
