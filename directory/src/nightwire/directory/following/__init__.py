"""A site's Kafka, read into rows: its log, its topics, its consumer groups."""

from nightwire.directory.following.follower import Follower, load
from nightwire.directory.following.log import MAX_RECORD, write

__all__ = ["MAX_RECORD", "Follower", "load", "write"]
