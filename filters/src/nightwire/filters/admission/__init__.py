"""Owners' requests: check, compile and try a filter, make a version live, answer."""

from typing import TYPE_CHECKING

from nightwire.schemas.lazy import on_demand

if TYPE_CHECKING:
    from nightwire.filters.admission.sources import SourceChecker
    from nightwire.filters.admission.text_process import CompilerBusyError, compile_apart
    from nightwire.filters.admission.transform_check import shape_mismatches

__all__ = ["CompilerBusyError", "SourceChecker", "compile_apart", "shape_mismatches"]

__getattr__ = on_demand(
    __name__,
    {
        "CompilerBusyError": "text_process",
        "SourceChecker": "sources",
        "compile_apart": "text_process",
        "shape_mismatches": "transform_check",
    },
)
