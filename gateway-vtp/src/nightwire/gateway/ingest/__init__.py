"""Events in: from authors, from remote brokers, from GCN, and our own test events."""

from nightwire.gateway.ingest import authors

__all__ = ["authors"]
