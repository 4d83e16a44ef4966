"""Registry."""

from nightwire.schemas.registry.client import AlertDecoder, SchemaRegistry

__all__ = ["AlertDecoder", "SchemaRegistry"]
