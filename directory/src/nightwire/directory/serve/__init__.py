"""The directory's process, and its HTTP."""

from nightwire.directory.gate import Gate
from nightwire.directory.serve.app import Site, application

__all__ = ["Gate", "Site", "application"]
