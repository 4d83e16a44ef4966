"""The directory's process and its HTTP API."""

from nightwire.directory.authorization import Authorizer
from nightwire.directory.serve.app import Site, application

__all__ = ["Authorizer", "Site", "application"]
