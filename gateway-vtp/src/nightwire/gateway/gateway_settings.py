"""What a gateway is told at its start."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from nightwire.gateway.handlers.settings import HandlerSettings
from nightwire.gateway.net.access import Access
from nightwire.gateway.net.limits import Limits
from nightwire.gateway.net.tls import TLSSettings
from nightwire.gateway.voevent.xml import MAX_DEPTH
from nightwire.gateway.vtp.frames import COMET_MAX_FRAME, MAX_FRAME

if TYPE_CHECKING:
    from nightwire.gateway.fanout.feed import Feed
from nightwire.gateway.ingest.settings import GcnSettings
from nightwire.gateway.net.addresses import Address
from nightwire.gateway.signing.requirements import SignatureSettings


@dataclass(frozen=True)
class ConnectionSettings:
    """Who may come, how many, and how.

    Attributes:
        authors: Where authors may come from.
        subscribers: Where subscribers may come from.
        limits: Of authors, and of subscribers.
        author_memory: Most memory for incomplete events, and as much for those on their way. [byte]
        max_depth: Deepest nesting of elements in an event.
        tls: Certificates.
    """

    authors: Access = field(default_factory=Access)
    subscribers: Access = field(default_factory=Access)
    limits: Limits = field(default_factory=Limits)
    author_memory: int = 256 << 20
    max_depth: int = MAX_DEPTH
    tls: TLSSettings = field(default_factory=TLSSettings)


@dataclass(frozen=True)
class Settings:
    """The options of ``nightwire gateway serve``; times in seconds."""

    bootstrap: str
    authors: Address
    state: Path
    ivorn: str = "ivo://nightwire/gateway"
    remotes: tuple[Address, ...] = ()
    remote_filters: tuple[str, ...] = ()
    remote_replay: float = 0.0
    feeds: tuple["Feed", ...] = ()
    registry: str | None = None
    test_interval: float | None = None
    doors: ConnectionSettings = field(default_factory=ConnectionSettings)
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
