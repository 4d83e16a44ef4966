"""Waiting for our Kafka at the start."""

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from confluent_kafka import KafkaException

from nightwire.core import kafka
from nightwire.core.process import Stop
from nightwire.producer._visits import PATIENCE
from nightwire.schemas import topics

log = logging.getLogger("nightwire.ingest")

T = TypeVar("T")


def make_topics(bootstrap: str, name: str) -> None:
    """Make the topics that writing alerts of survey *name* needs.

    Raises:
        KafkaException: Kafka refused, or cannot be reached.
    """
    names = (topics.alerts(name), topics.VISITS, topics.ACCOUNTS, topics.DEAD_LETTERS)
    kafka.ensure_topics(bootstrap, [topics.settings(topic) for topic in names])


def patiently(ask: Callable[[], T], stop: Stop, *, patience: float = PATIENCE) -> T:
    """Return what *ask* returns, asking again for *patience* [s] while Kafka is away.

    Raises:
        KafkaException: Kafka is still away.
    """
    deadline = time.monotonic() + patience
    while True:
        try:
            return ask()
        except KafkaException as error:
            if time.monotonic() > deadline or stop.wait(1.0):
                raise
            log.warning("Kafka does not answer: %s", error)
