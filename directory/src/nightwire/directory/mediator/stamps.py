"""One stamp of one alert over HTTP: its record is fetched by offset."""

import threading
import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaException, Message

from nightwire.core.kafka import MissingError, RecordFetcher, TopicPartition, headers_of
from nightwire.directory.mediator.kafka_access import check_topic, kafka_refusal
from nightwire.schemas import AlertDecoder, RegistryAwayError, SchemaError, StampError, stamp_file, survey
from nightwire.schemas.serving import RefusedError


class AlertFetcher:
    """Fetches single alerts of one partition.  Safe to use from several threads.

    Args:
        bootstrap: Kafka's address.
        client: librdkafka's properties, with the user's credentials.
        partition: Topic and number.

    Attributes:
        last_used: When it was last used. [s, `time.monotonic`]

    Raises:
        RefusedError: Kafka refuses the topic, or does not answer.
    """

    def __init__(self, bootstrap: str, client: Mapping[str, Any], partition: TopicPartition) -> None:
        self.last_used = time.monotonic()
        self._partition, self._lock = partition, threading.Lock()
        self._fetcher = RecordFetcher(bootstrap, client)
        try:
            check_topic(self._fetcher, partition[0])
        except RefusedError:
            self._fetcher.close()
            raise

    def record(self, offset: int) -> Message:
        """Return the record at *offset*.

        Raises:
            RefusedError: 404: Kafka does not have it; 503: it does not answer.
        """
        self.last_used = time.monotonic()
        try:
            with self._lock:
                return self._fetcher.one(self._partition, offset)
        except MissingError as error:
            raise RefusedError(404, str(error)) from error
        except KafkaException as error:
            raise kafka_refusal(error.args[0], self._partition[0]) from error

    def close(self) -> None:
        """Close the consumer."""
        with self._lock:
            self._fetcher.close()


def stamp_image(message: Message, decoder: AlertDecoder, wanted: str) -> tuple[str, bytes]:
    """Return the media type and the bytes of a stamp of the alert in *message*.

    Args:
        message: A record.
        decoder: Decodes alerts.
        wanted: Name and format: ``science.fits``, ``difference.png``.

    Raises:
        RefusedError: 404: there is no such stamp; 422: it, or the alert, is broken; 503: the
            schema registry does not answer.
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
