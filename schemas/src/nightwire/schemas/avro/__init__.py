"""Avro: the codec with its two engines, object containers, and how one schema is read as another."""

from nightwire.schemas.avro.engines import best_engine

__all__ = ["best_engine"]
