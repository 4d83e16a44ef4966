"""Whether somebody may read a topic, as Kafka's own rights say."""

from collections.abc import Iterable
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
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
    try:
        bindings = client.describe_acls(matching).result(PATIENCE)
    except KafkaException as error:
        if error.args[0].code() == KafkaError.SECURITY_DISABLED:
            return True
        raise
    return allows(bindings, name)


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
