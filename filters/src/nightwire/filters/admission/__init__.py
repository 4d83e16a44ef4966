"""Owners' requests: check, compile and try a filter, make a version live, answer."""

from typing import TYPE_CHECKING

from nightwire.schemas.lazy import on_demand

if TYPE_CHECKING:
    from nightwire.filters.admission.sources import SourceChecker
    from nightwire.filters.admission.text_process import compile_function
    from nightwire.filters.admission.transform_check import shape_mismatches

__all__ = ["SourceChecker", "compile_function", "shape_mismatches"]

__getattr__ = on_demand(__name__)
