"""Reading and writing topics over HTTP, for clients behind a firewall."""

from nightwire.directory.mediator.mediator import Endpoint, Handler, Mediator

__all__ = ["Endpoint", "Handler", "Mediator"]
