"""One stamp of one alert over HTTP: its record is fetched by offset, as who asks."""

import threading
import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaException, Message

from nightwire.core.kafka import MissingError, RecordFetcher, TopicPartition, headers_of
from nightwire.directory.mediator.kafka_access import check_topic, refusal
from nightwire.schemas import (
    AlertDecoder,
    RegistryAwayError,
    SchemaError,
    StampError,
    stamp_file,
    survey,
)
from nightwire.schemas.serving import RefusedError


class AlertFetcher:
    """Fetches single alerts of one partition.  Safe to use from several threads.

    Args:
        bootstrap: Kafka's address.
        client: librdkafka's properties of who asks.
        place: The partition.

    Attributes:
        used: When it was last used. [s, `time.monotonic`]

    Raises:
        RefusedError: Kafka refuses the topic, or does not answer.
    """

    def __init__(self, bootstrap: str, client: Mapping[str, Any], place: TopicPartition) -> None:
        self.used = time.monotonic()
        self._place, self._lock = place, threading.Lock()
        self._fetcher = RecordFetcher(bootstrap, client)
        try:
            check_topic(self._fetcher, place[0])
        except RefusedError:
            self._fetcher.close()
            raise

    def record(self, offset: int) -> Message:
        """Return the record at *offset*.

        Raises:
            RefusedError: 404: Kafka does not have it; 503: it does not answer.
        """
        self.used = time.monotonic()
        try:
            with self._lock:
                return self._fetcher.one(self._place, offset)
        except MissingError as error:
            raise RefusedError(404, str(error)) from error
        except KafkaException as error:
            raise refusal(error.args[0], self._place[0]) from error

    def close(self) -> None:
        """Leave Kafka."""
        with self._lock:
            self._fetcher.close()


def picture(message: Message, decoder: AlertDecoder, wanted: str) -> tuple[str, bytes]:
    """Return the media type and the bytes of a stamp of the alert in *message*.

    Args:
        message: A record.
        decoder: Decodes it.
        wanted: Name and form: ``science.fits``, ``difference.png``.

    Raises:
        RefusedError: 404: there is no such stamp; 422: it, or the alert, is broken; 503: the
            alert's schema cannot be had just now.
    """
    named = headers_of(message).get("survey", str(message.topic()).partition(".")[2].encode())
    try:
        alert = decoder.decode(message.value() or b"").alert
        return stamp_file(survey(named.decode(errors="replace")).view(alert).stamps, wanted)
    except LookupError as error:
        raise RefusedError(404, str(error.args[0])) from error
    except RegistryAwayError as error:
        raise RefusedError(503, str(error)) from error
    except (SchemaError, StampError) as error:
        raise RefusedError(422, str(error)) from error
