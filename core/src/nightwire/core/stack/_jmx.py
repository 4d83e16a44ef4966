"""Kafka's JMX agent: by it a broker tells Prometheus about itself."""

from importlib.resources import files
from importlib.resources.abc import Traversable

from nightwire.core.stack._jars import jar_folder

AGENT = "jmx_prometheus_javaagent-*.jar"
"""It comes with Kafka's jars."""
RULES: Traversable = files("nightwire.core.stack") / "jmx.yml"
"""What it tells."""


def agent_options(port: int) -> tuple[str, ...]:
    """Return Java's options for an agent whose page is at *port*, on this machine.

    Raises:
        JarError: Kafka's jars could not be fetched, or are not the pinned ones.
    """
    (jar,) = jar_folder().glob(AGENT)
    return (f"-javaagent:{jar}=127.0.0.1:{port}:{RULES}",)
