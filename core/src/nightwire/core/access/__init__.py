"""Access to Kafka: passwords, rights and quotas of owners and community brokers."""

from nightwire.core.access.may_read import may_read

__all__ = ["may_read"]
