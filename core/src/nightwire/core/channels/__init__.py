"""The channels of a topic: mappings in a compacted topic, copies by sources, local delivery."""

from typing import TYPE_CHECKING

from nightwire.core.channels.copying import ChannelCopies, OneSchema
from nightwire.core.channels.coverage import HEADER, MARK, Coverage, CoverageError, coverage_of, number_of
from nightwire.core.channels.in_process import LOCAL_DELIVERY, RecordQueue
from nightwire.core.channels.mapping import (
    MAX_CONDITION,
    ChannelMapping,
    MappingError,
    channel_of,
    mapping_of,
)
from nightwire.core.channels.table import MOST_OF_A_TOPIC, ChannelFollower, ChannelTable, CurrentMapping
from nightwire.schemas.lazy import on_demand

if TYPE_CHECKING:
    from nightwire.core.channels.judging import ChannelJudges

__all__ = [
    "HEADER",
    "LOCAL_DELIVERY",
    "MARK",
    "MAX_CONDITION",
    "MOST_OF_A_TOPIC",
    "ChannelCopies",
    "ChannelFollower",
    "ChannelJudges",
    "ChannelMapping",
    "ChannelTable",
    "Coverage",
    "CoverageError",
    "CurrentMapping",
    "MappingError",
    "OneSchema",
    "RecordQueue",
    "channel_of",
    "coverage_of",
    "mapping_of",
    "number_of",
]

__getattr__ = on_demand(__name__, {"ChannelJudges": "judging"})  # it needs NumPy
