"""Whether somebody may read a topic, as Kafka's own rights say."""

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

PATIENCE = 30.0
"""Longest wait for an answer. [s]"""

READING = (AclOperation.READ, AclOperation.ALL)


def may_read(bootstrap: str, name: str, topic: str) -> bool:
    """Return whether principal *name* may read *topic*; everybody may where Kafka has no authorizer.

    Raises:
        KafkaException: Kafka cannot be reached, or does not let us ask.
    """
    anything: Any = None
    matching = AclBindingFilter(
        ResourceType.TOPIC, topic, ResourcePatternType.MATCH, anything, anything,
        AclOperation.ANY, AclPermissionType.ANY,
    )  # fmt: skip
    client = admin(bootstrap)  # kept until there is an answer
    if believes_everybody(client):
        return True
    return allows(client.describe_acls(matching).result(PATIENCE), name)


def believes_everybody(client: AdminClient) -> bool:
    """Return whether Kafka has no authorizer: asked for rights, it then answers as if nobody had any.

    Raises:
        KafkaException: Kafka cannot be reached, or does not let us ask.
    """
    brokers = client.list_topics(timeout=PATIENCE).brokers
    some = ConfigResource(ResourceType.BROKER, str(min(brokers)))
    config = client.describe_configs([some])[some].result(PATIENCE)
    entry = config.get("authorizer.class.name")
    return entry is not None and not entry.value


def allows(bindings: Iterable[AclBinding], name: str) -> bool:
    """Return whether *bindings*, all those of one topic, let principal *name* read it.  Pure.

    As Kafka decides: what is denied is denied, and what nobody allows, too.
    """
    found = [
        one.permission_type
        for one in bindings
        if one.principal in (f"User:{name}", "User:*") and one.operation in READING
    ]
    return AclPermissionType.ALLOW in found and AclPermissionType.DENY not in found
