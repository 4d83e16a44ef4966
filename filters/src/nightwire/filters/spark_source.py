"""Alerts as a Spark table or stream: ``spark.readStream.format("nightwire")``.

See docs/user/spark.md.
"""

from nightwire.filters.spark.alert_source import register

__all__ = ["register"]
