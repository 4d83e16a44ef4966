"""`AlertReader`: from records to alerts, lists and tables, each once, and what is done is kept."""

from nightwire.consumers.reader.read_loop import BadRecord
from nightwire.consumers.reader.reader import AlertReader, Topics

__all__ = ["AlertReader", "BadRecord", "Topics"]
