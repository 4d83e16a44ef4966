"""Whole alerts in place of those that came without stamps: fetched when they are asked for."""

import threading
from collections.abc import Mapping

from confluent_kafka import KafkaException

from nightwire.consumers.alert import ReceivedAlert, RecordDecoder
from nightwire.core.datagrams import LITE_HEADER
from nightwire.core.kafka import MissingError, RecordFetcher
from nightwire.schemas import SchemaError, Stamp, StampError


class FullAlerts:
    """Fetches alerts from Kafka, with a client that is kept.  Safe to use from several threads.

    Args:
        bootstrap: Kafka's address.
        decoder: Decodes them.
    """

    def __init__(self, bootstrap: str, decoder: RecordDecoder) -> None:
        self._bootstrap, self._decoder = bootstrap, decoder
        self._lock = threading.Lock()
        self._fetcher: RecordFetcher | None = None

    def of(self, alert: ReceivedAlert) -> ReceivedAlert:
        """Return *alert* as it lies whole in Kafka.

        A datagram's lite form has the place of the whole; what a filter has made lighter names
        where the whole lay first.

        Raises:
            MissingError: Kafka does not have it, or does not let us read it.
            KafkaException: Kafka cannot be reached.
        """
        topic, partition, offset = whole_position(alert)
        with self._lock:
            self._fetcher = self._fetcher or RecordFetcher(self._bootstrap)
            message = self._fetcher.one((topic, partition), offset)
        return self._decoder.decode(message)

    def stamps(self, alert: ReceivedAlert) -> Mapping[str, Stamp]:
        """Return the stamps of the whole of *alert*.

        Raises:
            StampError: It cannot be had; says why.
        """
        try:
            return self.of(alert).stamps
        except (MissingError, KafkaException, SchemaError) as error:
            topic, partition, offset = whole_position(alert)
            where = f"{topic}[{partition}]@{offset}"
            raise StampError(
                f"the stamps of {alert.place} cannot be fetched from {where}: {error}"
            ) from error

    def close(self) -> None:
        """Leave Kafka; who asks later enters it anew."""
        with self._lock:
            if self._fetcher is not None:
                self._fetcher.close()
                self._fetcher = None


def whole_position(alert: ReceivedAlert) -> tuple[str, int, int]:
    """Return topic, partition and offset of the whole of an alert."""
    return alert.position if LITE_HEADER in alert.headers else alert.origin
