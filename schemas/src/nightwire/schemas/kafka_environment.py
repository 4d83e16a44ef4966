"""Environment variables that set librdkafka's properties: one rule, both ways."""

import os
from collections.abc import Mapping

PREFIX = "KAFKA_"


def properties(env: Mapping[str, str] = os.environ, prefix: str = PREFIX) -> dict[str, str]:
    """Return librdkafka properties from ``KAFKA_*``: ``KAFKA_SASL_USERNAME`` is ``sasl.username``.

    Args:
        env: The environment.
        prefix: What the names of other clusters' settings begin with.
    """
    return {
        name.removeprefix(prefix).lower().replace("_", "."): value
        for name, value in env.items()
        if name.startswith(prefix) and name != f"{prefix}BOOTSTRAP_SERVERS"
    }


def environment(settings: Mapping[str, str], prefix: str = PREFIX) -> dict[str, str]:
    """Return the variables from which `properties` reads *settings* again."""
    return {prefix + name.upper().replace(".", "_"): value for name, value in settings.items()}
