"""Owners' requests: check, compile and try a filter, make a version live, answer."""

from nightwire.filters.admission.sources import SourceChecker

__all__ = ["SourceChecker"]
