"""Containment: filters that are code are judged in processes that can do nothing but judge."""

from nightwire.filters.sandbox.confinement import OPTIONAL_LAYERS, layers
from nightwire.filters.sandbox.sandbox import Sandbox
from nightwire.filters.sandbox.types import Limits, Outcome, RowFilter, SandboxError, Strength

__all__ = [
    "OPTIONAL_LAYERS",
    "Limits",
    "Outcome",
    "RowFilter",
    "Sandbox",
    "SandboxError",
    "Strength",
    "layers",
]
