"""XPath filters of subscribers: read, bounded in cost, evaluated."""

from nightwire.gateway.xpath.filters import compile_filter

__all__ = ["compile_filter"]
