"""Skymaps that VOEvents name: fetched from hosts that the operator named, and drawn."""

from nightwire.portal.skymaps.cache import HostError, SkymapCache
from nightwire.portal.skymaps.drawing import DrawnSkymap

__all__ = ["DrawnSkymap", "HostError", "SkymapCache"]
