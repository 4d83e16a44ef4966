"""The service directory: SQL over the compacted topic ``directory``."""

from nightwire.directory.answers import Answer, SubscribeError
from nightwire.directory.find import find
from nightwire.directory.model import QueryError

__all__ = ["Answer", "QueryError", "SubscribeError", "find"]
