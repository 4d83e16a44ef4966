"""Avro."""

from nightwire.schemas.avro.engines import best_engine

__all__ = ["best_engine"]
