"""Whether a principal may read a topic, by Kafka's own rights."""

from collections.abc import Iterable
from typing import Any

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
)

from nightwire.core.kafka import admin

TIMEOUT = 30.0
"""Longest wait for an answer. [s]"""

READING = (AclOperation.READ, AclOperation.ALL)


def may_read(bootstrap: str, name: str, topic: str) -> bool:
    """Return whether principal *name* may read *topic*; true where Kafka has no authorizer.

    Raises:
        KafkaException: Kafka cannot be reached, or does not let us ask.
    """
    anything: Any = None
    matching = AclBindingFilter(
        ResourceType.TOPIC, topic, ResourcePatternType.MATCH, anything, anything,
        AclOperation.ANY, AclPermissionType.ANY,
    )  # fmt: skip
    client = admin(bootstrap)  # kept until there is an answer
    if is_open(client):
        return True
    return allows(client.describe_acls(matching).result(TIMEOUT), name)


def is_open(client: AdminClient) -> bool:
    """Return whether Kafka has no authorizer; it would answer that no principal has rights.

    Raises:
        KafkaException: Kafka cannot be reached, or does not let us ask.
    """
    brokers = client.list_topics(timeout=TIMEOUT).brokers
    some = ConfigResource(ResourceType.BROKER, str(min(brokers)))
    config = client.describe_configs([some])[some].result(TIMEOUT)
    entry = config.get("authorizer.class.name")
    return entry is not None and not entry.value


def allows(bindings: Iterable[AclBinding], name: str) -> bool:
    """Return whether all *bindings* of one topic let principal *name* read it.  Pure.

    Kafka decides so: a denial counts before any leave, and without leave reading is denied.
    """
    found = [
        one.permission_type
        for one in bindings
        if one.principal in (f"User:{name}", "User:*") and one.operation in READING
    ]
    return AclPermissionType.ALLOW in found and AclPermissionType.DENY not in found
