"""Which channels a topic has, and what carries each: said in a compacted topic, and followed."""

from typing import TYPE_CHECKING

from nightwire.core.channels.copying import ChannelCopies, OneSchema
from nightwire.core.channels.in_process import WRITTEN_HERE, Mailbox
from nightwire.core.channels.mapping import (
    MAX_CONDITION,
    ChannelMapping,
    MappingError,
    channel_of,
    mapping_of,
)
from nightwire.core.channels.table import MOST_OF_A_TOPIC, ChannelFollower, ChannelTable, HeldMapping
from nightwire.core.channels.vouching import HEADER, MARK, Vouch, VouchError, number_of, vouch_of
from nightwire.schemas.lazy import on_demand

if TYPE_CHECKING:
    from nightwire.core.channels.judging import ChannelJudges

__all__ = [
    "HEADER",
    "MARK",
    "MAX_CONDITION",
    "MOST_OF_A_TOPIC",
    "WRITTEN_HERE",
    "ChannelCopies",
    "ChannelFollower",
    "ChannelJudges",
    "ChannelMapping",
    "ChannelTable",
    "HeldMapping",
    "Mailbox",
    "MappingError",
    "OneSchema",
    "Vouch",
    "VouchError",
    "channel_of",
    "mapping_of",
    "number_of",
    "vouch_of",
]

__getattr__ = on_demand(__name__, {"ChannelJudges": "judging"})  # it needs NumPy
