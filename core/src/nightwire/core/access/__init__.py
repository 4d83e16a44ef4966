"""Access to Kafka: passwords, rights and quotas of owners and community brokers."""

from nightwire.core.access.may_read import WRITING, ReadRights, may_read, read_rights

__all__ = ["WRITING", "ReadRights", "may_read", "read_rights"]
