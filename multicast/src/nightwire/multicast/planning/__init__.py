"""Channels by what is wanted: planned, shown, and changed at one place of the log."""

from nightwire.multicast.planning.measuring import Traffic, demand_of
from nightwire.multicast.planning.plan import Demand, Settings, name_of, plan
from nightwire.multicast.planning.service import LEAD, Planner, Sample, end_of, put

__all__ = ["LEAD", "Demand", "Planner", "Sample", "Settings", "Traffic", "demand_of", "end_of", "name_of",
           "plan", "put"]  # fmt: skip
