"""Plans of channels by the subscriptions: measured, shown and applied at one offset."""

from nightwire.multicast.planning.measurement import Traffic, demand_of
from nightwire.multicast.planning.plan import Demand, Settings, name_of, plan
from nightwire.multicast.planning.planner import LEAD, Planner, Sample, offsets_ahead, write_mappings

__all__ = ["LEAD", "Demand", "Planner", "Sample", "Settings", "Traffic", "demand_of", "name_of",
           "offsets_ahead", "plan", "write_mappings"]  # fmt: skip
