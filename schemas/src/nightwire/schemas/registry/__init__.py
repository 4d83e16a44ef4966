"""The schema registry: its client and the decoder of messages, and our own server on Kafka."""

from nightwire.schemas.registry.client import SchemaRegistry
from nightwire.schemas.registry.decoder import AlertDecoder, Columns, Decoded

__all__ = ["AlertDecoder", "Columns", "Decoded", "SchemaRegistry"]
