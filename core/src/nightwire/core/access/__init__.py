"""Who may do what in Kafka: owners of filters and community brokers, their passwords, rights and quotas."""

from nightwire.core.access.reading import may_read

__all__ = ["may_read"]
