"""The first question to a Kafka: whether somebody answers, and lets us in."""

import logging

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from nightwire.core.kafka.clients import COMMON, REFUSALS, identity

log = logging.getLogger("nightwire.kafka")

TIMEOUT = 5.0
"""Longest wait for an answer. [s]"""


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
    client = AdminClient(settings)
    future = client.describe_cluster(request_timeout=TIMEOUT)
    while not future.done():
        client.poll(0.02)
        if refusal := next((error for error in errors if error.code() in REFUSALS), None):
            who = settings.get("sasl.username", "whoever has no name")
            raise KafkaException(KafkaError(refusal.code(), f"{bootstrap} does not let {who} in"))
    if future.exception() is None:
        return bootstrap
    why = f" ({errors[0].str().partition(': ')[2].partition(' (after')[0]})" if errors else ""
    if must_answer:
        raise KafkaException(KafkaError(KafkaError._ALL_BROKERS_DOWN, f"nobody answers at {bootstrap}{why}"))
    log.warning("nobody answers at %s%s; waiting for it", bootstrap, why)
    return bootstrap
