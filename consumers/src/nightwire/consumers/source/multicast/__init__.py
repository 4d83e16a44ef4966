"""Records by multicast, repaired from Kafka, and from Kafka alone where nothing is received."""

from nightwire.consumers.source.multicast.channel_listener import ChannelListener
from nightwire.consumers.source.multicast.group_choice import GroupChoice
from nightwire.consumers.source.multicast.in_process import InProcessListener
from nightwire.consumers.source.multicast.listener import Listener
from nightwire.consumers.source.multicast.multicast_source import (
    AnyListener,
    MulticastGroupSource,
    MulticastSource,
)
from nightwire.consumers.source.multicast.reorder_buffer import BufferedRange, ReorderBuffer

__all__ = [
    "AnyListener",
    "BufferedRange",
    "ChannelListener",
    "GroupChoice",
    "InProcessListener",
    "Listener",
    "MulticastGroupSource",
    "MulticastSource",
    "ReorderBuffer",
]
