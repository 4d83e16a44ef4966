"""One alert as a reader hands it out: decoded, with its record's place, key and headers."""

import html
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from nightwire.consumers.alert.summary import Summary, summarise
from nightwire.core.datagrams import LITE_HEADER
from nightwire.schemas import AlertView, Stamp, StampError, Survey


@dataclass(frozen=True, eq=False)
class ReceivedAlert:
    """An alert, and where it came from.

    Attributes:
        alert: The decoded alert, by its survey's own field names.
        value: The record's value, byte for byte.
        body: The Avro body in it.
        survey: Name of the survey, None where neither a header nor the topic names one.
        topic: The topic that it was read from.
        partition: Its partition.
        offset: Its offset.  (topic, partition, offset) is the same at every delivery of the record.
        timestamp: When it was written. [UTC]
        key: The record's key.
        headers: The record's headers; of equal names the last.
        schema_id: Id in the wire format; None where the value is a whole container.
        schema: The writer's Avro schema; shared, so do not change it.
    """

    alert: dict[str, Any]
    value: bytes = field(repr=False)
    body: bytes = field(repr=False)
    survey: str | None
    topic: str
    partition: int
    offset: int
    timestamp: datetime
    key: bytes | None
    headers: Mapping[str, bytes]
    schema_id: int | None
    schema: Mapping[str, Any] = field(repr=False)
    _survey: Survey | None = field(repr=False)
    _fetch_stamps: "FetchStamps | None" = field(default=None, repr=False)

    @cached_property
    def view(self) -> AlertView | None:
        """The alert by canonical names and units, whatever its survey; None without a survey."""
        return None if self._survey is None else self._survey.view(self.alert)

    @cached_property
    def stamps(self) -> dict[str, Stamp]:
        """The alert's stamps by name, empty where it has none; decoded when they are used.

        Where it came without them, they are fetched from Kafka, from where it lies whole.

        Raises:
            StampError: They cannot be fetched; says why.
        """
        if self.came_without_stamps and self._fetch_stamps is not None:
            return dict(self._fetch_stamps(self))
        getters = {} if self._survey is None else self._survey.stamps
        found = ((name, get(self.alert)) for name, get in getters.items())
        return {name: Stamp(name, raw) for name, raw in found if raw}

    @property
    def came_without_stamps(self) -> bool:
        """Whether its stamps were left out, by a relay or by a filter that makes alerts lighter."""
        paths = () if self._survey is None else self._survey.description.stamps.values()
        fields = {path.partition(".")[0] for path in paths}
        if LITE_HEADER in self.headers:
            return bool(fields)
        return bool(fields) and fields.isdisjoint(self.alert) and self.origin != self.position

    @cached_property
    def summary(self) -> Summary:
        """What fits on one line: id, object, time, position, band, magnitude, signal-to-noise."""
        return summarise(self.alert, self.view)

    @property
    def position(self) -> tuple[str, int, int]:
        """Topic, partition, offset of the record: equal whenever it is delivered again."""
        return self.topic, self.partition, self.offset

    @property
    def place(self) -> str:
        """The record's position as text: ``topic[partition]@offset``."""
        return f"{self.topic}[{self.partition}]@{self.offset}"

    @property
    def origin(self) -> tuple[str, int, int]:
        """Where the alert first lay: by the headers of what a filter passed on; else `position`.

        Equal for all duplicates, also for those that a filter sent twice.
        """
        return origin(self.position, self.headers)

    @property
    def alert_id(self) -> int | str | None:
        """The survey's id of the alert; None without a survey, or where it has none."""
        return None if self._survey is None else self._survey.find_alert_id(self.alert)

    def __repr__(self) -> str:
        line = " ".join(f"{name}={text}" for name, text in self.summary.texts().items() if text)
        return f"<ReceivedAlert {line} at {self.place}>"

    def _repr_html_(self) -> str:
        texts = self.summary.texts()
        head = "".join(f"<th style='text-align:left'>{html.escape(name)}</th>" for name in texts)
        row = "".join(f"<td style='text-align:left'>{html.escape(text)}</td>" for text in texts.values())
        pictures = "".join(_pictures(self))
        return (
            f"<div><table><tr>{head}</tr><tr>{row}</tr></table>"
            f"<div style='display:flex;gap:8px'>{pictures}</div>"
            f"<small>{html.escape(self.place)}</small></div>"
        )


def origin(position: tuple[str, int, int], headers: Mapping[str, bytes]) -> tuple[str, int, int]:
    """Return where a record first lay, by its *headers*; else its own *position*."""
    try:
        topic, partition, offset = (headers[name] for name in ("topic", "partition", "offset"))
        return topic.decode(), int(partition), int(offset)
    except (KeyError, ValueError):
        return position


FetchStamps = Callable[[ReceivedAlert], Mapping[str, Stamp]]
"""Fetches the stamps of an alert that came without them."""


def _pictures(alert: ReceivedAlert) -> Iterator[str]:
    try:
        yield from (_figure(stamp) for stamp in alert.stamps.values())
    except StampError as error:
        yield f"<small>{html.escape(str(error))}</small>"


def _figure(stamp: Stamp) -> str:
    name = html.escape(stamp.name)
    try:
        picture = b64encode(stamp.png()).decode()
    except StampError as error:
        body = f"<div style='width:150px'>{html.escape(str(error))}</div>"
    else:
        body = (
            f"<img src='data:image/png;base64,{picture}' alt='{name}' "
            "style='width:150px;image-rendering:pixelated'>"
        )
    return f"<figure style='margin:4px 0'>{body}<figcaption>{name}</figcaption></figure>"
