"""From a Kafka record to an alert, and the survey that the alert belongs to."""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Protocol

from confluent_kafka import Message

from nightwire.consumers.alert.alert import FetchStamps, ReceivedAlert, origin
from nightwire.core.kafka import headers_of
from nightwire.schemas import Decoded, DecodeError, SchemaError, Survey, survey

ALERTS = "alerts."
"""What the topics of surveys begin with."""


class Decoder(Protocol):
    """What we need of an `AlertDecoder`."""

    def decode(self, value: bytes) -> Decoded:
        """Return the alert, its Avro body and its schema."""


class RecordDecoder:
    """Makes alerts of records.

    Args:
        decoder: Decodes the records' values.
        survey_name: The survey of all alerts; None goes by each record's header or topic.
        stamps: Fetches the stamps of an alert that came without them; None: nothing does.
    """

    def __init__(
        self, decoder: Decoder, *, survey_name: str | None = None, stamps: FetchStamps | None = None
    ) -> None:
        self._decoder, self._survey_name, self._stamps = decoder, survey_name, stamps

    def decode(self, message: Message) -> ReceivedAlert:
        """Return the alert in *message*.

        Raises:
            DecodeError: There is none.
            UnknownSchemaError: Nobody knows its schema; as RegistryAwayError, where asking again
                may help.
        """
        value = message.value()
        if value is None:
            raise DecodeError("the record has no value: it deletes its key")
        decoded = self._decoder.decode(value)
        topic, headers = str(message.topic()), headers_of(message)
        name = self._survey_name or survey_of(topic, headers)
        return ReceivedAlert(
            alert=decoded.alert,
            value=value,
            body=decoded.body,
            survey=name,
            topic=topic,
            partition=message.partition() or 0,
            offset=message.offset() or 0,
            timestamp=datetime.fromtimestamp(max(0, message.timestamp()[1]) / 1000, UTC),
            key=message.key(),
            headers=headers,
            schema_id=decoded.schema_id,
            schema=decoded.schema,
            _survey=known_survey(name),
            _fetch_stamps=self._stamps,
        )


def origin_of(message: Message) -> tuple[str, int, int]:
    """Return where the alert in *message* first lay: topic, partition and offset."""
    position = str(message.topic()), message.partition() or 0, message.offset() or 0
    return origin(position, headers_of(message))


def survey_of(topic: str, headers: Mapping[str, bytes]) -> str | None:
    """Return the survey that the header ``survey`` names, else the topic ``alerts.<survey>``."""
    if named := headers.get("survey"):
        return named.decode(errors="replace")
    return topic.removeprefix(ALERTS) if topic.startswith(ALERTS) else None


@cache
def known_survey(name: str | None) -> Survey | None:
    """Return the description of a survey, None where there is none."""
    try:
        return None if name is None else survey(name)
    except SchemaError:
        return None
