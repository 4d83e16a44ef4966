"""The owner's side: a notebook's submitted source, a trial on a sample, requests."""

from typing import TYPE_CHECKING

from nightwire.schemas.lazy import on_demand

if TYPE_CHECKING:
    from nightwire.filters.authoring.client import file_source

__all__ = ["file_source"]

__getattr__ = on_demand(__name__, {"file_source": "client"})
