"""The portal over HTTP: pages for people, an API beside each."""

from nightwire.portal.serve.app import application
from nightwire.portal.serve.portal import Portal

__all__ = ["Portal", "application"]
