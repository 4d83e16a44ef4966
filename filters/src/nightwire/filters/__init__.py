"""Filters: astronomers' Python functions, judged over every alert in one pass."""

from nightwire.filters.authoring.api import Submitted, submit, try_filter
from nightwire.filters.language import FilterError, compile_filter, fields_read, objections

__all__ = [
    "FilterError",
    "Submitted",
    "compile_filter",
    "fields_read",
    "objections",
    "submit",
    "try_filter",
]
