"""The archive over HTTP."""

from nightwire.archive.serving.app import application

__all__ = ["application"]
