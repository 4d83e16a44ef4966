"""The archive of Kafka's classes."""

from functools import cache
from pathlib import Path

from nightwire.core import java_classes
from nightwire.core.stack._jars import jar_folder


@cache
def kafka_archive() -> Path:
    """Return where the archive of Kafka's classes is, or would be."""
    return java_classes.archive("kafka", jar_folder().glob("*.jar"))
