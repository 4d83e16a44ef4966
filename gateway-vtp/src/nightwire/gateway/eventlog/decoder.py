"""From a Kafka record to the event that subscribers get.

A record of `voevents` holds it as it came; of a filter topic's alerts a template makes it.
"""

import hashlib
import logging
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from nightwire.core.channels import OneSchema
from nightwire.core.kafka import headers_of
from nightwire.gateway.eventlog.event import Event
from nightwire.gateway.eventlog.event_index import EventIndex, IndexEntry
from nightwire.gateway.voevent.packet import element_bytes
from nightwire.gateway.voevent.template import alert_ivorn, alert_voevent
from nightwire.schemas import DecodeError, RegistryAwayError, SchemaError, survey, surveys
from nightwire.schemas.records import VOEVENT
from nightwire.schemas.registry import AlertDecoder
from nightwire.schemas.topics import VOEVENTS, named_survey
from nightwire.schemas.wire import unframe

if TYPE_CHECKING:
    from nightwire.filters.language import Condition, Judgement

log = logging.getLogger(__name__)

RETRACTION = "retraction"
MAX_RETRACTED = 8
"""Most events that one event may retract."""
READ_TIMEOUT = 5.0
"""Longest wait for Kafka. [s]"""

DELIVERED = ("ivorn", "role", "citations", "raw")
"""The fields of a record that deliveries need: its parameters take most of its decoding."""

_ALERT = re.compile(r"ivo://nightwire/((?:filter|alerts|broker)\.[^#]+)#.+")


Place = tuple[int, int]
"""Partition and offset of a record."""


def name_hash(ivorn: bytes) -> bytes:
    """Return the key of an IVORN in the index of names."""
    return hashlib.sha256(ivorn).digest()


class CitedEvents:
    """Find events by IVORN.  Used by one thread.

    Args:
        names: Where the first event of each IVORN lies in `voevents`.
        alerts: Where alerts lie that went to a feed with a condition, by their IVORN.
        make_reader: Returns a consumer, used by this alone.
    """

    def __init__(self, names: EventIndex, alerts: EventIndex, make_reader: Callable[[], Consumer]) -> None:
        self._names, self._alerts, self._make_reader = names, alerts, make_reader
        self._reader: Consumer | None = None

    def note_alert(self, event: Event) -> None:
        """Note an alert that meets a condition: its retraction goes where it went."""
        self._alerts.add([IndexEntry(name_hash(event.ivorn.encode()), event.partition, event.offset)], {})

    def place(self, topic: str, ivorn: str) -> Place | None:
        """Return where the event lies in *topic*; None where it is not known."""
        return (self._names if topic == VOEVENTS else self._alerts).first(name_hash(ivorn.encode()))

    def read(self, topic: str, partition: int, offset: int) -> Message:
        """Return a record.

        Raises:
            DecodeError: Kafka has it no more.
            KafkaException: Kafka cannot be reached.
        """
        self._reader = self._reader or self._make_reader()
        self._reader.assign([TopicPartition(topic, partition, offset)])
        deadline = time.monotonic() + READ_TIMEOUT
        try:
            while time.monotonic() < deadline:
                message = self._reader.poll(0.2)
                if message is not None and message.error() is None:
                    return message
        finally:
            self._reader.unassign()
        raise DecodeError(f"Kafka has no record at {topic}[{partition}]@{offset}")


IsFirst = Callable[[bytes, int, int], bool]
Rows = list[tuple[str, "Judgement", int]]
"""For each condition: its text, what it says of a batch, and the index in that of one alert."""


def element_hash(message: Message) -> bytes:
    """Return the hash of the event in a record of `voevents`, computed where its writer left none.

    Raises:
        DecodeError: The record is none of `voevents`.
    """
    known = headers_of(message).get("hash")
    if known is not None:
        return known
    return hashlib.sha256(element_bytes(VOEVENT.decode(message.value() or b"")["raw"])).digest()


class FeedConditions:
    """Judges the conditions of a topic's feeds on alerts, before these are decoded.

    Args:
        topic: The topic.
        texts: The conditions; None among them: of a feed that takes all.

    Attributes:
        texts: The conditions.
        bounded: Whether nobody wants what meets none of them: handlers take no whole surveys.
    """

    def __init__(self, topic: str, texts: Collection[str | None]) -> None:
        self.texts = [text for text in texts if text is not None]
        self.bounded = None not in texts and topic.startswith("alerts.")
        self._made: dict[tuple[str, str], Condition] = {}
        self._ahead: dict[Place, Rows] = {}  # what was judged of the batch that is at hand
        from nightwire.filters.language import Oddities

        self._oddities = {text: Oddities() for text in self.texts}

    def prepare(self, of_survey: str, values: Mapping[Place, bytes], decoder: AlertDecoder) -> None:
        """Judge alerts at once, at a twentieth of the time that one by one takes.

        Args:
            of_survey: Their survey.
            values: The alerts, by partition and offset.
            decoder: Reads them.
        """
        self._ahead |= zip(values, self._judged([*values.values()], of_survey, decoder), strict=True)

    def forget(self) -> None:
        """Forget what was judged ahead: a batch is done."""
        self._ahead.clear()

    def met(self, place: Place, value: bytes, of_survey: str, decoder: AlertDecoder) -> frozenset[str]:
        """Return the conditions that hold on the alert in *value*, at partition and offset *place*.

        Raises:
            DecodeError: It holds none.
            UnknownSchemaError: Nobody knows its schema.
        """
        rows = self._ahead.pop(place, None) or self._judged([value], of_survey, decoder)[0]
        return frozenset(text for text, said, at in rows if _holds(said, at))

    def _judged(self, values: Sequence[bytes], of_survey: str, decoder: AlertDecoder) -> list[Rows]:
        said = [(text, self._condition(text, of_survey).judge(values, decoder)) for text in self.texts]
        for text, one in said:
            for oddity in self._oddities[text].of(one, of_survey):
                log.warning("where %s: %s", text, oddity)
        return [[(text, one, at) for text, one in said] for at in range(len(values))]

    def _condition(self, text: str, of_survey: str) -> "Condition":
        from nightwire.filters.language import Condition

        condition = self._made.get((text, of_survey)) or Condition(text, of_survey)
        self._made[text, of_survey] = condition
        return condition


def _holds(said: "Judgement", at: int) -> bool:
    if (error := said.errors.get(at)) is not None:
        raise error
    return at in said.passed


class EventDecoder:
    """Make events of records.

    Args:
        is_first: Whether a hash was first seen at this partition and offset of `voevents`.
        decoder: Reads alerts; None where no feed needs it.
        cited: Finds the events that others retract.
        templates: Survey whose template is used, per topic; None: that of the record's header.
        conditions: Conditions of the feeds of each topic; None among them: of one that takes all.
    """

    def __init__(
        self,
        is_first: IsFirst,
        decoder: AlertDecoder | None,
        cited: CitedEvents,
        templates: Mapping[str, str | None],
        conditions: Mapping[str, Collection[str | None]] = MappingProxyType({}),
    ) -> None:
        self._is_first, self._decoder, self._cited = is_first, decoder, cited
        self._voevents = AlertDecoder(OneSchema(VOEVENT.codec))
        self._read_again = lru_cache(maxsize=64)(self._cited_event)
        self._templates = templates
        self._conditions = {
            topic: found
            for topic, texts in conditions.items()
            if (found := FeedConditions(topic, texts)).texts
        }

    def prepare(self, messages: Sequence[Message]) -> None:
        """Judge the alerts of a batch at once, before `event` is asked for each."""
        for topic, conditions in self._conditions.items():
            conditions.forget()
            batches: dict[str, dict[Place, bytes]] = {}
            for message in messages:
                if message.topic() == topic:
                    with suppress(DecodeError):  # `event` says why
                        values = batches.setdefault(self._survey(message, topic), {})
                        values[message.partition() or 0, message.offset() or 0] = message.value() or b""
            for name, values in batches.items():
                conditions.prepare(name, values, self._alerts(topic))

    def event(self, message: Message) -> Event:
        """Return the event in *message*.

        One that repeats an earlier event, or that no feed wants, is not deliverable.

        Raises:
            DecodeError: It holds nothing that can be read.
            UnknownSchemaError: Nobody knows its schema.
            RegistryAwayError: The schema registry does not answer; try again later.
        """
        if message.topic() != VOEVENTS:
            alert = self._alert(message)
            if alert.meets:
                self._cited.note_alert(alert)
            return alert
        record = _delivered_fields(message)
        found = self._voevent(message, record)
        if not self._is_first(element_hash(message), found.partition, found.offset):
            return found._replace(deliverable=False)
        return found._replace(retracts=self._retracted(record["citations"]))

    def _voevent(self, message: Message, record: Mapping[str, Any]) -> Event:
        found = record["ivorn"], str(record["role"]), bytes(record["raw"])
        return _event(message, *found)._replace(meets=self._met(message, VOEVENTS))

    def _alert(self, message: Message) -> Event:
        topic, written = str(message.topic()), int(message.timestamp()[1])
        decoder, name, meets = self._alerts(topic), self._survey(message, topic), self._met(message, topic)
        if meets is not None and not meets and self._conditions[topic].bounded:
            return _event(message, "", "observation", b"")._replace(meets=meets)
        view = survey(name).view(decoder.decode(message.value() or b"").alert)
        document = alert_voevent(view, survey=name, topic=topic, written=written)
        found = _event(message, alert_ivorn(topic, name, view.id), "observation", document)
        return found._replace(meets=meets)

    def _met(self, message: Message, topic: str) -> frozenset[str] | None:
        """Return the conditions that hold on what *message* holds; None where there is none."""
        if (conditions := self._conditions.get(topic)) is None:
            return None
        place, value = (message.partition() or 0, message.offset() or 0), message.value() or b""
        return conditions.met(place, value, self._survey(message, topic), self._alerts(topic))

    def _retracted(self, citations: Iterable[Mapping[str, str]]) -> tuple[Event, ...]:
        """Return the known events that *citations* retract, at most `MAX_RETRACTED`."""
        ivorns = [one["ivorn"] for one in citations if one["cite"] == RETRACTION]
        return tuple(found for ivorn in ivorns[:MAX_RETRACTED] if (found := self._find(ivorn)) is not None)

    def _find(self, ivorn: str) -> Event | None:
        """Return the event, without a document where that is lost; None where there is none."""
        alert = _ALERT.fullmatch(ivorn)
        topic = alert[1] if alert else VOEVENTS
        lost = Event(topic, 0, -1, ivorn, "observation", b"")
        if alert and topic not in self._conditions:
            return lost
        if (place := self._cited.place(topic, ivorn)) is None:  # of alerts: no condition held
            return lost._replace(meets=frozenset()) if alert else None
        return self._read_again(lost._replace(partition=place[0], offset=place[1]))

    def _cited_event(self, lost: Event) -> Event:
        """Return the event that lies where *lost* says; itself where Kafka has it no more."""
        try:
            message = self._cited.read(*lost.topic_partition, lost.offset)
            alert = lost.topic != VOEVENTS
            found = self._alert(message) if alert else self._voevent(message, _delivered_fields(message))
        except RegistryAwayError:
            raise
        except (KafkaException, SchemaError) as error:  # of which nothing is the retraction's fault
            log.warning("%s, which is retracted, cannot be read again: %s", lost.ivorn, error)
            return lost
        return found if found.ivorn == lost.ivorn else lost

    def _alerts(self, topic: str) -> AlertDecoder:
        if topic == VOEVENTS:
            return self._voevents
        if self._decoder is None:
            raise RuntimeError(f"{topic} is a feed, so a schema registry is needed")
        return self._decoder

    def _survey(self, message: Message, topic: str) -> str:
        if topic == VOEVENTS:
            return VOEVENTS
        return self._templates.get(topic) or _survey_of(message, topic)


def _event(message: Message, ivorn: str, role: str, document: bytes) -> Event:
    place = str(message.topic()), message.partition() or 0, message.offset() or 0
    return Event(*place, ivorn, role, document, bool(document), int(message.timestamp()[1]))


def _delivered_fields(message: Message) -> dict[str, Any]:
    """Return the `DELIVERED` fields of a record of `voevents`.

    Raises:
        DecodeError: It is none.
    """
    schema_id, body = unframe(memoryview(message.value() or b""))
    if schema_id != VOEVENT.schema_id:
        raise DecodeError(f"schema id {schema_id} where a {VOEVENT.name} record has {VOEVENT.schema_id}")
    return VOEVENT.codec.decode(body, DELIVERED)


def _survey_of(message: Message, topic: str) -> str:
    """Return the survey that a record's header names, or its topic."""
    found = headers_of(message).get("survey")
    name = named_survey(topic) or "" if found is None else found.decode(errors="replace")
    if name not in surveys():
        raise DecodeError(
            f"{topic}: header 'survey' is {name!r}, known are {', '.join(surveys())}; "
            "a feed's template can say it instead"
        )
    return name
