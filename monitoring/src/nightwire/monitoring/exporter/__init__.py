"""The exporter: accounts, lag and Kafka's health as metrics of Prometheus."""

from nightwire.monitoring.exporter.exporter import Exporter, export
from nightwire.monitoring.exporter.metrics import register
from nightwire.monitoring.exporter.pipeline_state import PipelineState

__all__ = ["Exporter", "PipelineState", "export", "register"]
