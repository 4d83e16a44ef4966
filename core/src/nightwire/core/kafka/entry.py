"""The first question to a Kafka: whether somebody answers, and lets us in."""

import logging
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from nightwire.core.kafka.clients import COMMON, REFUSALS, error_code, error_text, identity

log = logging.getLogger("nightwire.kafka")

TIMEOUT = 5.0
"""Longest wait for an answer. [s]"""
SLICE = 0.25
"""Time between two looks whether we are refused. [s]"""


def enter(bootstrap: str, *, must_answer: bool = True) -> str:
    """Return *bootstrap* once its Kafka has let us in.

    Args:
        bootstrap: ``HOST:PORT[,HOST:PORT…]``.
        must_answer: Whether it is an error that nobody answers; else that is logged.

    Raises:
        KafkaException: It refuses our name or password, or nobody answers there.
    """
    try:
        answering(bootstrap, identity(bootstrap))
    except KafkaException as error:
        if must_answer or error_code(error) in REFUSALS:
            raise
        log.warning("%s; waiting for it", error_text(error))
    return bootstrap


def answering(bootstrap: str, client: Mapping[str, Any]) -> None:
    """Do nothing where the Kafka at *bootstrap* answers, and lets in who comes with *client*.

    librdkafka takes a wrong password for a broker that may come back, and tries for a minute.

    Args:
        bootstrap: ``HOST:PORT[,HOST:PORT…]``.
        client: librdkafka's properties, such as name and password.

    Raises:
        KafkaException: It refuses name or password, shows a certificate of somebody whom we do not
            trust, or nobody answers there.
    """
    errors: list[KafkaError] = []
    settings = {**COMMON, **client, "bootstrap.servers": bootstrap, "error_cb": errors.append}
    asking, deadline = AdminClient(settings), time.monotonic() + TIMEOUT
    while time.monotonic() < deadline:
        with suppress(KafkaException):
            asking.list_topics(timeout=SLICE)
            return
        asking.poll(0)
        if any("certificate verify failed" in error.str() for error in errors):
            raise KafkaException(
                KafkaError(KafkaError._SSL, f"the certificate of {bootstrap} is not trusted")
            )
        if refusal := next((error for error in errors if error.code() in REFUSALS), None):
            who = client.get("sasl.username", "whoever has no name")
            raise KafkaException(KafkaError(refusal.code(), f"{bootstrap} does not let {who} in"))
    why = f" ({errors[0].str().partition(': ')[2].partition(' (after')[0]})" if errors else ""
    raise KafkaException(KafkaError(KafkaError._ALL_BROKERS_DOWN, f"nobody answers at {bootstrap}{why}"))
