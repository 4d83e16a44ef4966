"""Records by the topic of a derived channel, whose condition covers the reader's."""

from nightwire.consumers.source.channels.channel_listener import ChannelListener
from nightwire.consumers.source.channels.choice import covering
from nightwire.consumers.source.channels.group_choice import GroupChoice
from nightwire.consumers.source.channels.in_process import InProcessListener

__all__ = ["ChannelListener", "GroupChoice", "InProcessListener", "covering"]
