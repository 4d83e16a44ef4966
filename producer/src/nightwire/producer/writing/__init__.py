"""Writing."""

from nightwire.producer.writing.writer import OVERHEAD

__all__ = ["OVERHEAD"]
