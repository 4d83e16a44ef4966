"""The sandbox: filters that are code run in processes that can do nothing but judge alerts."""

from nightwire.filters.sandbox.confinement import OPTIONAL_LAYERS, layers
from nightwire.filters.sandbox.sandbox import Sandbox
from nightwire.filters.sandbox.syscalls import die_with_parent
from nightwire.filters.sandbox.types import Limits, NoSandboxError, Outcome, RowFilter, SandboxError, Strength

__all__ = [
    "OPTIONAL_LAYERS",
    "Limits",
    "NoSandboxError",
    "Outcome",
    "RowFilter",
    "Sandbox",
    "SandboxError",
    "Strength",
    "die_with_parent",
    "layers",
]
