"""Channels by what is wanted: planned, shown, and changed at one place of the log."""

from nightwire.multicast.planning.measuring import (
    NothingToMeasureError,
    Traffic,
    demand_of,
    shares_of,
    traffic_of,
)
from nightwire.multicast.planning.plan import Change, Demand, Settings, name_of, plan
from nightwire.multicast.planning.service import LEAD, PlanError, Planner, Sample, end_of, put

__all__ = [
    "LEAD",
    "Change",
    "Demand",
    "NothingToMeasureError",
    "PlanError",
    "Planner",
    "Sample",
    "Settings",
    "Traffic",
    "demand_of",
    "end_of",
    "name_of",
    "plan",
    "put",
    "shares_of",
    "traffic_of",
]
