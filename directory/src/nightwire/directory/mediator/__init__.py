"""Reading and writing topics over HTTP, for who sits behind a firewall."""

from nightwire.directory.mediator.mediator import Mediator

__all__ = ["Mediator"]
