"""A client of the survey's own Kafka, with credentials that nobody gets to see."""

import logging
import os
import time
from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException

from nightwire.core import kafka
from nightwire.core.kafka import properties

log = logging.getLogger("nightwire.ingest")

PREFIX = "NIGHTWIRE_SOURCE_KAFKA_"
"""Of variables that set librdkafka's properties for the source; ``KAFKA_*`` are the target's."""


class SourceError(Exception):
    """The source is not as the marks say, or cannot be read at all; the message says what to do."""


def connect(address: str, group: str, env: Mapping[str, str] = os.environ) -> Consumer:
    """Return a consumer of the cluster at *address*, with ``NIGHTWIRE_SOURCE_KAFKA_*`` as its settings.

    Raises:
        SourceError: A setting is none; its value is not told.
    """
    settings = properties(env, PREFIX)
    try:
        return Consumer(
            kafka.CONSUMER
            | settings
            | {
                "bootstrap.servers": address,
                "group.id": group,
                "enable.partition.eof": True,
                "error_cb": Complaints(),
            }
        )
    except KafkaException as error:
        named = ", ".join(PREFIX + name.upper().replace(".", "_") for name in sorted(settings))
        reason = error.args[0].str()
        if any(value and value in reason for value in settings.values()):
            reason = error.args[0].name()
        raise SourceError(f"the source's settings ({named or 'none'}) are refused: {reason}") from None


class Complaints:
    """Logs what librdkafka complains of, each kind at most once a minute."""

    def __init__(self) -> None:
        self._said: dict[int, float] = {}

    def __call__(self, error: KafkaError) -> None:
        """Log *error*."""
        now = time.monotonic()
        if now - self._said.get(error.code(), float("-inf")) >= 60.0:
            self._said[error.code()] = now
            log.warning("the source's Kafka: %s", error.str())
