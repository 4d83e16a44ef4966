"""Flows as values: text, graph, types of edges."""

from nightwire.flows.model.check import EventType, check, field_of, router_conditions, transform_of
from nightwire.flows.model.flow import ELSE, ENDS, Edge, Flow, FlowError, Source, Stone
from nightwire.flows.model.functions import COMPUTE, EVERY, PASSES, SAID, SAYS, compiled, computed
from nightwire.flows.model.kinds import ALERTS, KINDS, MOST_ALERTS, RETURNS, STATE_LIMITS, seconds
from nightwire.flows.model.parse import parse

__all__ = [
    "ALERTS",
    "COMPUTE",
    "ELSE",
    "ENDS",
    "EVERY",
    "KINDS",
    "MOST_ALERTS",
    "PASSES",
    "RETURNS",
    "SAID",
    "SAYS",
    "STATE_LIMITS",
    "Edge",
    "EventType",
    "Flow",
    "FlowError",
    "Source",
    "Stone",
    "check",
    "compiled",
    "computed",
    "field_of",
    "parse",
    "router_conditions",
    "seconds",
    "transform_of",
]
