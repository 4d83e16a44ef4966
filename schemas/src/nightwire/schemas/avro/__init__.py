"""Avro: the codec with its two engines, object containers, and schema resolution."""

from nightwire.schemas.avro.engines import best_engine

__all__ = ["best_engine"]
