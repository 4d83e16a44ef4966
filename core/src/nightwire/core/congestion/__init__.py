"""A slow link gets less of each alert, not old ones; what it missed is owed, and follows."""

from nightwire.core.congestion.ladder import LIMIT, Ladder, Level
from nightwire.core.congestion.link import (
    FOLLOWS_HEADER,
    LEVEL_HEADER,
    Batch,
    Link,
    Place,
    memory_of,
    place_of,
)
from nightwire.core.congestion.owed import BLOCK, Block, Owed, Sent, ranges
from nightwire.core.congestion.reduction import Handler, Reduction

__all__ = [
    "BLOCK",
    "FOLLOWS_HEADER",
    "LEVEL_HEADER",
    "LIMIT",
    "Batch",
    "Block",
    "Handler",
    "Ladder",
    "Level",
    "Link",
    "Owed",
    "Place",
    "Reduction",
    "Sent",
    "memory_of",
    "place_of",
    "ranges",
]
