"""Delivery of decisions: copies, transforms and overflow, at least once."""

from typing import TYPE_CHECKING

from nightwire.schemas.lazy import on_demand

if TYPE_CHECKING:
    from nightwire.filters.delivery.overflow import read_overflow
    from nightwire.filters.delivery.transform_writer import TransformWriter, register_derived

__all__ = ["TransformWriter", "read_overflow", "register_derived"]

__getattr__ = on_demand(__name__)
