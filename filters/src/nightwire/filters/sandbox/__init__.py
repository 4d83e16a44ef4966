"""Containment: filters that are code are judged in processes that can do nothing but judge."""

from nightwire.filters.sandbox._contract import Limits, Outcome, RowFilter, SandboxError, Strength
from nightwire.filters.sandbox._layers import layers
from nightwire.filters.sandbox._sandbox import Sandbox
from nightwire.filters.sandbox._walls import OPTIONAL

__all__ = ["OPTIONAL", "Limits", "Outcome", "RowFilter", "Sandbox", "SandboxError", "Strength", "layers"]
