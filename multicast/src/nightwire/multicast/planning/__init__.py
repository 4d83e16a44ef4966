"""Channels by what is wanted: planned, shown, and changed at one place of the log."""

from nightwire.multicast.planning.measurement import Traffic, demand_of
from nightwire.multicast.planning.plan import Demand, Settings, name_of, plan
from nightwire.multicast.planning.planner import LEAD, Planner, Sample, offsets_ahead, write_mappings

__all__ = ["LEAD", "Demand", "Planner", "Sample", "Settings", "Traffic", "demand_of", "name_of",
           "offsets_ahead", "plan", "write_mappings"]  # fmt: skip
