"""Records out of Kafka: by assignment, as a member of a group, of one visit."""

from nightwire.consumers.source.archived import ArchivedSource
from nightwire.consumers.source.chosen_topics import ChosenGroupSource, ChosenSource
from nightwire.consumers.source.consumer_group import GroupError, GroupSource, membership
from nightwire.consumers.source.multicast import (
    AnyListener,
    ChannelListener,
    GroupChoice,
    InProcessListener,
    Listener,
    MulticastGroupSource,
    MulticastSource,
)
from nightwire.consumers.source.plan import AutoGroup, Plan, StartMode
from nightwire.consumers.source.record_source import (
    OFFSET_TIMEOUT,
    RecordSource,
    TopicError,
    next_offsets,
    partitions_of,
    position_of,
)
from nightwire.consumers.source.slow_link import SlowLinkSource
from nightwire.consumers.source.start_offsets import at_time
from nightwire.consumers.source.timespec import milliseconds, parse_since
from nightwire.consumers.source.visit import VisitLog, VisitSource, survey_in

__all__ = [
    "OFFSET_TIMEOUT",
    "AnyListener",
    "ArchivedSource",
    "AutoGroup",
    "ChannelListener",
    "ChosenGroupSource",
    "ChosenSource",
    "GroupChoice",
    "GroupError",
    "GroupSource",
    "InProcessListener",
    "Listener",
    "MulticastGroupSource",
    "MulticastSource",
    "Plan",
    "RecordSource",
    "SlowLinkSource",
    "StartMode",
    "TopicError",
    "VisitLog",
    "VisitSource",
    "at_time",
    "membership",
    "milliseconds",
    "next_offsets",
    "parse_since",
    "partitions_of",
    "position_of",
    "survey_in",
]
