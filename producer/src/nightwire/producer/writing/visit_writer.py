"""The alerts of one visit, counted."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from confluent_kafka import KafkaError, Message

from nightwire.producer.spool.spool import SpoolFullError
from nightwire.producer.visits.counts import VisitCounts
from nightwire.schemas import EncodeError

log = logging.getLogger("nightwire.producer")

Alert = Mapping[str, Any]
Delivered = Callable[[Message], None]
Refused = Callable[[KafkaError], None]


@dataclass(frozen=True)
class Encoded:
    """An alert as it goes into Kafka: its key and its value."""

    key: bytes
    value: bytes


class Alerts(Protocol):
    """What a visit needs of an `AlertWriter`."""

    def encoded(self, alert: Alert) -> Encoded:
        """Return *alert* as it goes into Kafka."""

    def send(
        self, alert: Encoded, *, visit: int | None, on_delivered: Delivered | None, on_refused: Refused | None
    ) -> None:
        """Queue it."""


class VisitWriter:
    """Write the alerts of one visit."""

    def __init__(self, alerts: Alerts, ledger: VisitCounts) -> None:
        self._alerts, self.ledger = alerts, ledger

    def write(self, alert: Alert) -> None:
        """Queue *alert* and count it.

        Raises:
            EncodeError: The alert does not fit; it is counted as refused, and the visit can go on.
            SpoolFullError: Kafka is away and the spool is full; it is not counted, and can be offered again.
            DeliveryError: An earlier alert was lost.
        """
        try:
            encoded = self._alerts.encoded(alert)
        except EncodeError:
            self.ledger.offered += 1
            self.ledger.refuse("does-not-fit-schema")
            raise
        self.send(encoded)

    def send(self, alert: Encoded) -> None:
        """Queue an alert that is encoded already, and count it.

        Raises:
            SpoolFullError: Kafka is away and the spool is full; it is not counted, and can be offered again.
            DeliveryError: An earlier alert was lost.
        """

        def refused(error: KafkaError) -> None:
            log.warning("refused: alert of %r, %d bytes: %s", alert.key, len(alert.value), error.str())
            self.ledger.refuse("too-large")

        self.ledger.offered += 1
        try:
            self._alerts.send(
                alert,
                visit=self.ledger.visit,
                on_delivered=self.ledger.delivered,
                on_refused=refused,
            )
        except SpoolFullError:
            self.ledger.offered -= 1
            raise
