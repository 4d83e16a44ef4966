"""Ingest of a site's Kafka into rows: its log, its topics, its consumer groups."""

from nightwire.directory.ingest.follower import Follower, load
from nightwire.directory.ingest.log import MALFORMED, MAX_RECORD, entry_of, write

__all__ = ["MALFORMED", "MAX_RECORD", "Follower", "entry_of", "load", "write"]
