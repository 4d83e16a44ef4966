"""Skymaps that VOEvents name: fetched from hosts that the operator named, and drawn."""

from nightwire.portal.skymaps.drawing import DrawnSkymap
from nightwire.portal.skymaps.kept import HostError, Skymaps

__all__ = ["DrawnSkymap", "HostError", "Skymaps"]
