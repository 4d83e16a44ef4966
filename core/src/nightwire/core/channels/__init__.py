"""Which channels a topic has, and what carries each: said in a compacted topic, and followed."""

from nightwire.core.channels.copying import ChannelCopies
from nightwire.core.channels.mapping import ChannelMapping, MappingError, channel_of, mapping_of
from nightwire.core.channels.table import ChannelFollower, ChannelTable, HeldMapping
from nightwire.core.channels.vouching import HEADER, MARK, Vouch, VouchError, number_of, vouch_of

__all__ = [
    "HEADER",
    "MARK",
    "ChannelCopies",
    "ChannelFollower",
    "ChannelMapping",
    "ChannelTable",
    "HeldMapping",
    "MappingError",
    "Vouch",
    "VouchError",
    "channel_of",
    "mapping_of",
    "number_of",
    "vouch_of",
]
