"""Which channels a topic has, and what carries each: said in a compacted topic, and followed."""

from nightwire.core.channels.mapping import ChannelMapping, MappingError, mapping_of
from nightwire.core.channels.table import ChannelFollower, ChannelTable, HeldMapping

__all__ = ["ChannelFollower", "ChannelMapping", "ChannelTable", "HeldMapping", "MappingError", "mapping_of"]
