"""Less of each alert: by its own schema, so that whoever reads the whole one reads this, too."""

import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from confluent_kafka import Message

from nightwire.core.congestion.ladder import Level
from nightwire.core.datagrams import Worth
from nightwire.core.kafka import headers_of
from nightwire.schemas import AlertDecoder, Codec, Decoded, SchemaError, Survey, survey, wire

Handler = Callable[[Level, Sequence[Message]], Iterable[Message]]
"""Gives what goes out of a batch at a level below the first: less of each, or fewer of them.

At the last level whatever is the most worth comes first; as many are taken as the link takes.
"""

SYNC = b"nightwire reduces"[: wire.SYNC_SIZE]
MAX_SCHEMAS = 64
"""Schemas that are known at once."""


class _Form(NamedTuple):
    schema: Mapping[str, Any]  # is held, so that no other gets its address
    codec: Codec
    stamps: Mapping[str, Any]
    history: Mapping[str, Any]


class Reduction:
    """Blanks stamps, then history; ranks by an attribute.

    What cannot be decoded stays as it is; what has no such attribute is last in a ranking.

    Args:
        decoder: Decodes alerts.
        rank: An attribute of alerts, the least first; ``-`` before it: the greatest first.
        worth: What is worth the most comes first; of equals, what ranks first.
    """

    def __init__(self, decoder: AlertDecoder, rank: str = "magnitude", worth: Worth | None = None) -> None:
        self._decoder, self._rank, self._worth = decoder, rank.removeprefix("-"), worth
        self._sign = -1 if rank.startswith("-") else 1
        self._forms: dict[int, _Form] = {}

    def __call__(self, level: Level, batch: Sequence[Message]) -> Iterable[Message]:
        """Give *batch* at *level*.

        Raises:
            RegistryAwayError: What they are worth cannot be told just now.
        """
        ordered = self._ranked(batch) if level is Level.SAMPLE else batch
        return (self._reduced(level, message) for message in ordered)

    def _ranked(self, batch: Sequence[Message]) -> list[Message]:
        worth = self._worth([one.value() for one in batch]) if self._worth else [0.0] * len(batch)
        order = [(-each, self._rank_of(one)) for each, one in zip(worth, batch, strict=True)]
        return [batch[at] for at in sorted(range(len(batch)), key=order.__getitem__)]

    def _rank_of(self, message: Message) -> float:
        try:
            known, decoded = self._decoded(message)
            found = self._sign * float(getattr(known.view(decoded.alert), self._rank))
        except Exception:  # noqa: BLE001  # a stranger's schema may have anything where a number was
            return math.inf
        return found if math.isfinite(found) else math.inf

    def _reduced(self, level: Level, message: Message) -> Message:
        try:
            known, decoded = self._decoded(message)
            form = self._form(decoded.schema, known)
            blanks = {**form.stamps, **(form.history if level > Level.STAMPLESS else {})}
            body = form.codec.encode({**decoded.alert, **blanks})
        except SchemaError:
            return message
        number = decoded.schema_id
        return copied(message, _contained(form.codec, body) if number is None else wire.frame(number, body))

    def _decoded(self, message: Message) -> tuple[Survey, Decoded]:
        named = headers_of(message).get("survey", str(message.topic()).partition(".")[2].encode())
        return survey(named.decode(errors="replace")), self._decoder.decode(message.value() or b"")

    def _form(self, schema: Mapping[str, Any], known: Survey) -> _Form:
        if id(schema) not in self._forms:
            if len(self._forms) >= MAX_SCHEMAS:
                self._forms.clear()
            about = known.description
            stamps = blanks_of(schema, about.stamps.values())
            history = blanks_of(schema, [one.path for one in about.history])
            self._forms[id(schema)] = _Form(schema, Codec(schema), stamps, history)
        return self._forms[id(schema)]


def blanks_of(schema: Mapping[str, Any], paths: Collection[str]) -> dict[str, Any]:
    """Return what stands for the fields of *schema* in which *paths* lie, when they are left out.

    A field that can be neither null nor empty is not among them: it cannot be left out.
    """
    wanted = {path.partition(".")[0] for path in paths}
    found: dict[str, Any] = {}
    for field in schema["fields"]:
        kind = field["type"]
        kinds = [kind] if isinstance(kind, str | dict) else kind
        names = [one["type"] if isinstance(one, dict) else one for one in kinds]
        blank = next((EMPTY[name] for name in EMPTY if name in names), EMPTY)
        if field["name"] in wanted and blank is not EMPTY:
            found[field["name"]] = blank
    return found


EMPTY: Mapping[str, Any] = {"null": None, "array": [], "bytes": b""}
"""What is least of a type."""


def with_headers(message: Message, *headers: tuple[str, bytes]) -> Message:
    """Return *message* with further *headers*."""
    return copied(message, message.value(), headers) if headers else message


def copied(message: Message, value: bytes | None, headers: Sequence[tuple[str, bytes]] = ()) -> Message:
    """Return *message* with another *value* and further *headers*."""
    theirs: Any = message.headers() or []
    return Message(
        topic=message.topic(),
        partition=message.partition(),
        offset=message.offset(),
        key=message.key(),
        value=value,
        headers=[*theirs, *headers],
        timestamp=message.timestamp(),
    )


def _contained(codec: Codec, body: bytes) -> bytes:
    """Return a container of *body*."""
    text = json.dumps(codec.schema, separators=(",", ":")).encode()
    return wire.container_head(text, SYNC) + wire.container_block(body, SYNC)
