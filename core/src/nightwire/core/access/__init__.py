"""Access to Kafka: passwords, rights and quotas of owners and community brokers."""

from nightwire.core.access.may_read import ReadRights, may_read, read_rights

__all__ = ["ReadRights", "may_read", "read_rights"]
