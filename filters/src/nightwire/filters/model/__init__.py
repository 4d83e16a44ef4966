"""The values of the engine: filters, offsets, workers' messages, chains, transforms.  Pure."""

from typing import TYPE_CHECKING

from nightwire.schemas.lazy import on_demand

if TYPE_CHECKING:
    from nightwire.filters.model.compilation import Compilation, compile_request

__all__ = ["Compilation", "compile_request"]

__getattr__ = on_demand(__name__, dict.fromkeys(__all__, "compilation"))
