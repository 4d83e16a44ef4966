"""Records by multicast, repaired from Kafka, and from Kafka alone where nothing is heard."""

from nightwire.consumers.source.multicast.in_order import Held, InOrder
from nightwire.consumers.source.multicast.listener import Listener
from nightwire.consumers.source.multicast.multicast_source import MulticastGroupSource, MulticastSource
from nightwire.consumers.source.multicast.repair import MissingError, Repair

__all__ = ["Held", "InOrder", "Listener", "MissingError", "MulticastGroupSource", "MulticastSource", "Repair"]
