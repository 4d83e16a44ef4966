"""The embedded stack: Kafka, registry, gateway, filters, monitoring under one supervisor."""

from nightwire.core.runtime import die_with_parent, free_port
from nightwire.core.stack.kafka.broker import Broker, BrokerError
from nightwire.core.stack.kafka.jars import JarError, jar_folder

__all__ = ["Broker", "BrokerError", "JarError", "die_with_parent", "free_port", "jar_folder"]
