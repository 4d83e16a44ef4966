"""Records by multicast, repaired from Kafka, and from Kafka alone where nothing is heard."""

from nightwire.consumers.source.multicast.channel_listener import ChannelListener
from nightwire.consumers.source.multicast.group_choice import GroupChoice
from nightwire.consumers.source.multicast.in_order import Held, InOrder
from nightwire.consumers.source.multicast.in_process import InProcessListener
from nightwire.consumers.source.multicast.listener import Listener
from nightwire.consumers.source.multicast.multicast_source import (
    AnyListener,
    MulticastGroupSource,
    MulticastSource,
)

__all__ = [
    "AnyListener",
    "ChannelListener",
    "GroupChoice",
    "Held",
    "InOrder",
    "InProcessListener",
    "Listener",
    "MulticastGroupSource",
    "MulticastSource",
]
