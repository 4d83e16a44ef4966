"""The verbs ``nightwire gateway`` and ``nightwire send``."""

from nightwire.gateway._gateway_command import gateway
from nightwire.gateway._send_command import send

__all__ = ["gateway", "send"]
