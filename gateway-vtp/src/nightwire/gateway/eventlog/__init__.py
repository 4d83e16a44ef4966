"""Kafka as the log of events: written once, followed, indexed, accounted for, replayed."""

from nightwire.gateway.eventlog.decoder import EventDecoder
from nightwire.gateway.eventlog.deduplicator import Deduplicator
from nightwire.gateway.eventlog.event_index import EventIndex, IndexEntry
from nightwire.gateway.eventlog.loop_producer import Acknowledged, LoopProducer

__all__ = ["Acknowledged", "Deduplicator", "EventDecoder", "EventIndex", "IndexEntry", "LoopProducer"]
