"""Who is there, and alive: SQL over the compacted topic ``directory``."""

from nightwire.directory.find import Answer, find
from nightwire.directory.view import QueryError, View

__all__ = ["Answer", "QueryError", "View", "find"]
