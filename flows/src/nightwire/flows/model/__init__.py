"""Flows as values: text, graph, types of edges.  Pure."""

from nightwire.flows.model.check import EventType, check, router_conditions, transform_of
from nightwire.flows.model.flow import ELSE, Edge, Flow, FlowError, Source, Stone
from nightwire.flows.model.kinds import KINDS, seconds
from nightwire.flows.model.parse import parse

__all__ = [
    "ELSE",
    "KINDS",
    "Edge",
    "EventType",
    "Flow",
    "FlowError",
    "Source",
    "Stone",
    "check",
    "parse",
    "router_conditions",
    "seconds",
    "transform_of",
]
