"""The values of the engine: filters, offsets, workers' messages, chains, transforms.  Pure."""

from typing import TYPE_CHECKING

from nightwire.schemas.lazy import on_demand

if TYPE_CHECKING:
    from nightwire.filters.model.compilation import Compilation, compile_request
    from nightwire.filters.model.text_facts import load_facts, matches_named
    from nightwire.filters.model.transform import AddedField, Transform, light_form, parse_added

__all__ = [
    "AddedField",
    "Compilation",
    "Transform",
    "compile_request",
    "light_form",
    "load_facts",
    "matches_named",
    "parse_added",
]

__getattr__ = on_demand(__name__)
