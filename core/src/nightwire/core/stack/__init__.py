"""The embedded stack: Kafka, registry, gateway, filters and monitoring as children of one supervisor."""

from nightwire.core.stack._broker import Broker, BrokerError
from nightwire.core.stack._jars import JarError, jar_folder
from nightwire.core.stack._life import die_with_parent
from nightwire.core.stack._ports import free_port

__all__ = ["Broker", "BrokerError", "JarError", "die_with_parent", "free_port", "jar_folder"]
