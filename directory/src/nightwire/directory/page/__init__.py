"""The site's page: the writers and readers of each stream, drawn as a graph."""

from nightwire.directory.page.files import SECURITY_HEADERS, static
from nightwire.directory.page.graph import graph

__all__ = ["SECURITY_HEADERS", "graph", "static"]
