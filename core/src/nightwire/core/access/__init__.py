"""Who may do what in Kafka: owners of filters and community brokers, their passwords, rights and quotas."""

from nightwire.core.access.may_read import may_read

__all__ = ["may_read"]
