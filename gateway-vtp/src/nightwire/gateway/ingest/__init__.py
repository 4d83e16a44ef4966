"""Events in: from authors, from remote brokers, from GCN, and our own test events."""

from nightwire.gateway.ingest.author_acks import AuthorService

__all__ = ["AuthorService"]
