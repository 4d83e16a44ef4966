"""Whether a principal may read or write a topic, by Kafka's own rights."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigEntry,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
)

from nightwire.core.kafka import admin

TIMEOUT = 30.0
"""Longest wait for an answer. [s]"""

READING = (AclOperation.READ, AclOperation.ALL)
WRITING = (AclOperation.WRITE, AclOperation.ALL)


@dataclass(frozen=True)
class ReadRights:
    """Kafka's rights to topics, at one moment.

    Attributes:
        bindings: The rights; None where Kafka has no authorizer, and everybody may do everything.
        super_users: Principals that may do everything, such as ``User:admin``.
    """

    bindings: Sequence[AclBinding] | None = None
    super_users: Collection[str] = ()

    def allow(self, name: str, topic: str, operations: Collection[AclOperation] = READING) -> bool:
        """Return whether *name* may read *topic*, or do with it what *operations* say.  Pure."""
        if self.bindings is None or f"User:{name}" in self.super_users:
            return True
        return allows((one for one in self.bindings if _covers(one, topic)), name, operations)


def read_rights(bootstrap: str) -> ReadRights:
    """Return the rights to topics as they are now.

    Raises:
        KafkaException: Kafka cannot be reached, or does not let us ask.
    """
    anything: Any = None
    every = AclBindingFilter(
        ResourceType.TOPIC, anything, ResourcePatternType.ANY, anything, anything,
        AclOperation.ANY, AclPermissionType.ANY,
    )  # fmt: skip
    client = admin(bootstrap)  # kept until there is an answer
    config = _broker_config(client)
    if not _has_authorizer(config):
        return ReadRights()
    named = config.get("super.users")
    super_users = (named.value or "").split(";") if named else []
    return ReadRights(client.describe_acls(every).result(TIMEOUT), super_users)


def may_read(bootstrap: str, name: str, topic: str) -> bool:
    """Return whether principal *name* may read *topic*; true where Kafka has no authorizer.

    Raises:
        KafkaException: Kafka cannot be reached, or does not let us ask.
    """
    return read_rights(bootstrap).allow(name, topic)


def is_open(client: AdminClient) -> bool:
    """Return whether Kafka has no authorizer; it would answer that no principal has rights.

    Raises:
        KafkaException: Kafka cannot be reached, or does not let us ask.
    """
    return not _has_authorizer(_broker_config(client))


def allows(bindings: Iterable[AclBinding], name: str, operations: Collection[AclOperation] = READING) -> bool:
    """Return whether all *bindings* of one topic let principal *name* read it, or what else
    *operations* say.  Pure.

    Kafka decides so: a denial counts before any leave, and without leave all is denied.
    """
    found = [
        one.permission_type
        for one in bindings
        if one.principal in (f"User:{name}", "User:*") and one.operation in operations
    ]
    return AclPermissionType.ALLOW in found and AclPermissionType.DENY not in found


def _covers(one: AclBinding, topic: str) -> bool:
    if one.resource_pattern_type is ResourcePatternType.PREFIXED:
        return topic.startswith(one.name)
    return one.name in (topic, "*")


def _broker_config(client: AdminClient) -> dict[str, ConfigEntry]:
    brokers = client.list_topics(timeout=TIMEOUT).brokers
    some = ConfigResource(ResourceType.BROKER, str(min(brokers)))
    config: dict[str, ConfigEntry] = client.describe_configs([some])[some].result(TIMEOUT)
    return config


def _has_authorizer(config: Mapping[str, ConfigEntry]) -> bool:
    entry = config.get("authorizer.class.name")
    return entry is None or bool(entry.value)
