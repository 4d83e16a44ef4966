"""Subscriptions, advertisements and flows: records of compacted topics, written and followed."""

from nightwire.core.subscriptions.flow_problems import (
    REPEAT_INTERVAL,
    FlowProblem,
    read_problems,
    reported_problems,
)
from nightwire.core.subscriptions.flows import (
    MOST_NAMES,
    FlowDeniedError,
    FlowRecord,
    Flows,
    FlowTable,
    append_flow,
    read_flow_table,
    read_flows,
    read_names,
    write_flow,
)
from nightwire.core.subscriptions.follower import SubscriptionFollower
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
    "MOST_NAMES",
    "REFRESH",
    "REPEAT_INTERVAL",
    "FlowDeniedError",
    "FlowProblem",
    "FlowRecord",
    "FlowTable",
    "Flows",
    "InterestError",
    "LiveInterest",
    "Registrar",
    "SubscriptionFollower",
    "SubscriptionTable",
    "append_flow",
    "interest",
    "interest_key",
    "interest_of",
    "read_flow_table",
    "read_flows",
    "read_names",
    "read_problems",
    "reported_problems",
    "subscriber_name",
    "write_flow",
]
