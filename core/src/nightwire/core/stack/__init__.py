"""The embedded stack: Kafka, registry, gateway, filters and monitoring as children of one supervisor."""

from nightwire.core.runtime.ports import free_port
from nightwire.core.runtime.process import die_with_parent
from nightwire.core.stack.kafka.broker import Broker, BrokerError
from nightwire.core.stack.kafka.jars import JarError, jar_folder

__all__ = ["Broker", "BrokerError", "JarError", "die_with_parent", "free_port", "jar_folder"]
