"""One alert as a reader hands it out: its record decoded, its summary, its stamps."""

from nightwire.consumers.alert.alert import FetchStamps, ReceivedAlert
from nightwire.consumers.alert.deduplication import WINDOW, Dedup, Deduplicator, RecentKeys
from nightwire.consumers.alert.record_decoder import (
    ALERTS,
    Decoder,
    RecordDecoder,
    known_survey,
    origin_of,
    survey_of,
)
from nightwire.consumers.alert.summary import Summary
from nightwire.schemas import Stamp, StampError

__all__ = [
    "ALERTS",
    "WINDOW",
    "Decoder",
    "Dedup",
    "Deduplicator",
    "FetchStamps",
    "ReceivedAlert",
    "RecentKeys",
    "RecordDecoder",
    "Stamp",
    "StampError",
    "Summary",
    "known_survey",
    "origin_of",
    "survey_of",
]
