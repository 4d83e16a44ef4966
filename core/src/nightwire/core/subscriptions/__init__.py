"""Who wants what of which topic: said in a compacted topic, refreshed, and followed."""

from nightwire.core.subscriptions.following import Following
from nightwire.core.subscriptions.interest import (
    KINDS,
    MAX_CONDITION,
    REFRESH,
    InterestError,
    interest,
    interest_key,
    interest_of,
    subscriber_name,
)
from nightwire.core.subscriptions.registrar import Registrar
from nightwire.core.subscriptions.table import LiveInterest, SubscriptionTable

__all__ = [
    "KINDS",
    "MAX_CONDITION",
    "REFRESH",
    "Following",
    "InterestError",
    "LiveInterest",
    "Registrar",
    "SubscriptionTable",
    "interest",
    "interest_key",
    "interest_of",
    "subscriber_name",
]
