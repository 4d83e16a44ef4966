"""Records by the topic of a derived channel, whose condition covers the reader's."""

from nightwire.consumers.source.channels.channel_listener import ChannelListener
from nightwire.consumers.source.channels.choice import covering

__all__ = ["ChannelListener", "covering"]
