"""Flows as values: text, graph, types of edges."""

from nightwire.flows.model.flow import ELSE, ENDS, Edge, Flow, FlowError, Source, Stone
from nightwire.flows.model.functions import KEEP_AS_TRANSFORM, KEPT_FIELD, compile_filter
from nightwire.flows.model.kinds import ALERTS, KINDS, MOST_ALERTS, RETURNS, STATE_LIMITS, seconds
from nightwire.flows.model.parse import parse
from nightwire.flows.model.type_check import EventType, check, field_of, router_conditions, transform_of

__all__ = [
    "ALERTS",
    "ELSE",
    "ENDS",
    "KEEP_AS_TRANSFORM",
    "KEPT_FIELD",
    "KINDS",
    "MOST_ALERTS",
    "RETURNS",
    "STATE_LIMITS",
    "Edge",
    "EventType",
    "Flow",
    "FlowError",
    "Source",
    "Stone",
    "check",
    "compile_filter",
    "field_of",
    "parse",
    "router_conditions",
    "seconds",
    "transform_of",
]
