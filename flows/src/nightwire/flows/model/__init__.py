"""Flows as values: text, graph, types of edges."""

from nightwire.flows.model.check import KEPT, MOST_HELD, EventType, check, router_conditions, transform_of
from nightwire.flows.model.flow import ELSE, ENDS, Edge, Flow, FlowError, Source, Stone
from nightwire.flows.model.functions import compiled
from nightwire.flows.model.kinds import ALERTS, KINDS, RETURNS, seconds
from nightwire.flows.model.parse import parse

__all__ = [
    "ALERTS",
    "ELSE",
    "ENDS",
    "KEPT",
    "KINDS",
    "MOST_HELD",
    "RETURNS",
    "Edge",
    "EventType",
    "Flow",
    "FlowError",
    "Source",
    "Stone",
    "check",
    "compiled",
    "parse",
    "router_conditions",
    "seconds",
    "transform_of",
]
