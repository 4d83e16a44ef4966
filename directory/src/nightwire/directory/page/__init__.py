"""The site on a page: who writes and who reads which stream, drawn as a graph."""

from nightwire.directory.page.files import SAFE, static
from nightwire.directory.page.graph import graph

__all__ = ["SAFE", "graph", "static"]
