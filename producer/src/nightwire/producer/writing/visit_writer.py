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
class EncodedAlert:
    """The key and the value of an alert in Kafka."""

    key: bytes
    value: bytes


class AlertSink(Protocol):
    """What `VisitWriter` needs of an `AlertWriter`."""

    def encoded(self, alert: Alert) -> EncodedAlert:
        """Return the key and the value of *alert*."""

    def send(
        self,
        alert: EncodedAlert,
        *,
        visit: int | None,
        on_delivered: Delivered | None,
        on_refused: Refused | None,
    ) -> None:
        """Queue *alert*."""


class VisitWriter:
    """Writes the alerts of one visit.

    Args:
        alerts: Where to.
        counts: The counts of the visit.
    """

    def __init__(self, alerts: AlertSink, counts: VisitCounts) -> None:
        self._alerts, self.counts = alerts, counts

    def write(self, alert: Alert) -> None:
        """Queue *alert* and count it.

        Raises:
            EncodeError: The alert does not fit; it is counted as refused, and the visit can go on.
            SpoolFullError: Kafka is away and the spool full; the alert is not counted: try again.
            DeliveryError: An earlier alert was lost.
        """
        try:
            encoded = self._alerts.encoded(alert)
        except EncodeError:
            self.counts.offered += 1
            self.counts.refuse("does-not-fit-schema")
            raise
        self.send(encoded)

    def send(self, alert: EncodedAlert) -> None:
        """Queue an encoded alert, and count it.

        Raises:
            SpoolFullError: Kafka is away and the spool full; the alert is not counted: try again.
            DeliveryError: An earlier alert was lost.
        """

        def refused(error: KafkaError) -> None:
            log.warning("refused: alert of %r, %d bytes: %s", alert.key, len(alert.value), error.str())
            self.counts.refuse("too-large")

        self.counts.offered += 1
        try:
            self._alerts.send(
                alert,
                visit=self.counts.visit,
                on_delivered=self.counts.delivered,
                on_refused=refused,
            )
        except SpoolFullError:
            self.counts.offered -= 1
            raise
