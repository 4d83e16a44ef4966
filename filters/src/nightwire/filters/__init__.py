"""Filters: astronomers' Python functions, judged over every alert in one pass."""

from nightwire.filters.language import FilterError, compile_filter, fields_read, objections

__all__ = ["FilterError", "compile_filter", "fields_read", "objections"]
