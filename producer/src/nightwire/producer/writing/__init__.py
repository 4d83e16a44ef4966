"""Writing alerts to Kafka: `AlertWriter`, its message formats, its connection."""

from nightwire.producer.writing.writer import OVERHEAD

__all__ = ["OVERHEAD"]
