"""Kafka's brokers are asked to read their certificates again."""

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
)

from nightwire.core.kafka import admin

TIMEOUT = 10.0
"""Longest wait for an answer. [s]"""

PUBLIC = "listener.name.public"
"""What the settings of the listener for other machines begin with."""


def reload_certificates(bootstrap: str) -> int:
    """Let all brokers of the Kafka at *bootstrap* read their files; return how many there are.

    Raises:
        KafkaException: Kafka refuses, or cannot be reached.
    """
    return reload_brokers(admin(bootstrap))


def reload_brokers(kafka: AdminClient) -> int:
    """Let all brokers read their files; return how many there are.

    A broker does so when any setting of its own is set anew, though to the same value.

    Raises:
        KafkaException: Kafka refuses, or cannot be reached.
    """
    brokers = kafka.list_topics(timeout=TIMEOUT).brokers
    setting = ConfigEntry(f"{PUBLIC}.ssl.keystore.type", "PEM", incremental_operation=AlterConfigOpType.SET)
    asked = [
        ConfigResource(ConfigResource.Type.BROKER, str(broker), incremental_configs=[setting])
        for broker in brokers
    ]
    for one in asked:
        for done in kafka.incremental_alter_configs([one]).values():
            done.result(TIMEOUT)
    return len(brokers)
