"""Which channels a topic has, and what carries each: said in a compacted topic, and followed."""

from nightwire.core.channels.copying import ChannelCopies
from nightwire.core.channels.in_process import WRITTEN_HERE, Mailbox
from nightwire.core.channels.mapping import ChannelMapping, MappingError, channel_of, mapping_of
from nightwire.core.channels.table import ChannelFollower, ChannelTable, HeldMapping
from nightwire.core.channels.vouching import HEADER, MARK, Vouch, VouchError, number_of, vouch_of

__all__ = [
    "HEADER",
    "MARK",
    "WRITTEN_HERE",
    "ChannelCopies",
    "ChannelFollower",
    "ChannelMapping",
    "ChannelTable",
    "HeldMapping",
    "Mailbox",
    "MappingError",
    "Vouch",
    "VouchError",
    "channel_of",
    "mapping_of",
    "number_of",
    "vouch_of",
]
