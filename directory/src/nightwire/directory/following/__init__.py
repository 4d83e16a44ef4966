"""A site's Kafka, read into rows: its log, its topics, its consumer groups."""

from nightwire.directory.following.follower import Follower, load
from nightwire.directory.following.log import MALFORMED, MAX_RECORD, entry_of, write

__all__ = ["MALFORMED", "MAX_RECORD", "Follower", "entry_of", "load", "write"]
