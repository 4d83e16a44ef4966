"""The settings of what takes events in: from authors, from remote brokers, from GCN."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from nightwire.gateway.net.access import Access, Door
from nightwire.gateway.net.addresses import Address
from nightwire.gateway.net.limits import Limits
from nightwire.gateway.net.tls import TLSSettings
from nightwire.gateway.voevent.xml import MAX_DEPTH
from nightwire.gateway.vtp.frames import MAX_FRAME


@dataclass(frozen=True)
class AuthorSettings:
    """Connections from authors.

    Attributes:
        address: Where they connect to.
        access: The networks they may connect from.
        tls_door: Where they connect to by TLS as well; None: nowhere.
        limits: Connections and times.
        timeout: Longest time from one event to the end of the next. [s]
        max_frame: Longest event. [byte]
        max_depth: Deepest nesting of elements in an event.
        memory: Most memory for incomplete messages of all peers, and as much for events on their
            way to Kafka. [byte]
    """

    address: Address
    access: Access = field(default_factory=Access)
    tls_door: Door | None = None
    limits: Limits = field(default_factory=Limits)
    timeout: float = 20.0
    max_frame: int = MAX_FRAME
    max_depth: int = MAX_DEPTH
    memory: int = 64 << 20


@dataclass(frozen=True)
class UpstreamSettings:
    """Connections to remote brokers.

    Attributes:
        remotes: Their addresses.
        filters: XPath expressions that they are asked for.
        replay: How far back they are asked to begin, when first connected. [s]
        timeout: A broker that is silent for so long is connected to again. [s]
        frame_timeout: Longest time from the first byte of a message to its last. [s]
        max_frame: Longest event. [byte]
        max_depth: Deepest nesting of elements in an event.
        tls: Certificates.
    """

    remotes: tuple[Address, ...] = ()
    filters: tuple[str, ...] = ()
    replay: float = 0.0
    timeout: float = 120.0
    frame_timeout: float = 20.0
    max_frame: int = MAX_FRAME
    max_depth: int = MAX_DEPTH
    tls: TLSSettings = field(default_factory=TLSSettings)


@dataclass(frozen=True)
class GcnSettings:
    """What is read of GCN's Kafka.

    Attributes:
        bootstrap: Address of its Kafka.
        topics: Patterns of the topics that are wanted, with ``*``.
        oldest: Whether the first start begins with the oldest record, not with what comes next.
        properties: librdkafka's properties, the secret among them.
    """

    bootstrap: str
    topics: tuple[str, ...]
    oldest: bool = False
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
