"""The first question to a Kafka: whether somebody answers, and lets us in."""

import logging
import time
from contextlib import suppress

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from nightwire.core.kafka.clients import COMMON, REFUSALS, identity

log = logging.getLogger("nightwire.kafka")

TIMEOUT = 5.0
"""Longest wait for an answer. [s]"""
SLICE = 0.25
"""Time between two looks whether we are refused. [s]"""


def enter(bootstrap: str, *, must_answer: bool = True) -> str:
    """Return *bootstrap* once its Kafka has let us in.

    librdkafka takes a wrong password for a broker that may come back, and tries for a minute.

    Args:
        bootstrap: ``HOST:PORT[,HOST:PORT…]``.
        must_answer: Whether it is an error that nobody answers; else that is logged.

    Raises:
        KafkaException: It refuses our name or password, or nobody answers there.
    """
    errors: list[KafkaError] = []
    settings = COMMON | identity(bootstrap) | {"bootstrap.servers": bootstrap, "error_cb": errors.append}
    client, deadline = AdminClient(settings), time.monotonic() + TIMEOUT
    while time.monotonic() < deadline:
        with suppress(KafkaException):
            client.list_topics(timeout=SLICE)
            return bootstrap
        client.poll(0)
        if refusal := next((error for error in errors if error.code() in REFUSALS), None):
            who = settings.get("sasl.username", "whoever has no name")
            raise KafkaException(KafkaError(refusal.code(), f"{bootstrap} does not let {who} in"))
    why = f" ({errors[0].str().partition(': ')[2].partition(' (after')[0]})" if errors else ""
    if must_answer:
        raise KafkaException(KafkaError(KafkaError._ALL_BROKERS_DOWN, f"nobody answers at {bootstrap}{why}"))
    log.warning("nobody answers at %s%s; waiting for it", bootstrap, why)
    return bootstrap
