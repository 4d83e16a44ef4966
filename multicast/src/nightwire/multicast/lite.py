"""The lite form of alerts: without stamps and history, by a derived schema that is registered."""

import json
from typing import Any, NamedTuple

from nightwire.schemas import Codec, DecodeError, SchemaRegistry, derived_schema, kept_fields, wire
from nightwire.schemas import survey as survey_called


class _LiteCodec(NamedTuple):
    source: Codec
    fields: list[str]
    lite: Codec
    schema_id: int


class LiteForm:
    """Encodes alerts in their lite form.

    Args:
        registry: Knows the schemas of alerts, and gives the derived ones their ids.
        survey: Whose alerts.
        topic: Of the alerts.
    """

    def __init__(self, registry: SchemaRegistry, survey: str, topic: str) -> None:
        about = survey_called(survey).description
        stamps = [path.partition(".")[0] for path in about.stamps.values()]
        self._drop = [*stamps, *(one.path for one in about.history)]
        self._registry, self._subject = registry, f"multicast.{topic}-value"
        self._codecs: dict[Any, _LiteCodec] = {}

    def __call__(self, value: bytes) -> bytes | None:
        """Return an alert's value in its lite form; None where it cannot be decoded.

        Raises:
            RegistryAwayError: The registry does not answer.
        """
        try:
            codec, body = self._codec_of(value)
            return wire.frame(codec.schema_id, codec.lite.encode(codec.source.decode(body, codec.fields)))
        except DecodeError:
            return None

    def _codec_of(self, value: bytes) -> tuple[_LiteCodec, bytes]:
        if wire.is_container(value):
            record = next(wire.read_container(value))
            name: Any = json.dumps(record.schema, sort_keys=True)
            body = record.body
        else:
            name, body = wire.unframe(value)
        if name not in self._codecs:
            known = Codec(json.loads(name)) if isinstance(name, str) else self._registry.codec(name)
            self._codecs[name] = self._lite_codec(known)
        return self._codecs[name], body

    def _lite_codec(self, source: Codec) -> _LiteCodec:
        schema = derived_schema(source.schema, self._drop)
        # what the survey changes is not ours to refuse
        if self._registry.compatibility(self._subject) != "NONE":
            self._registry.set_compatibility("NONE", self._subject)
        number = self._registry.register(self._subject, schema)
        return _LiteCodec(source, kept_fields(source.schema, self._drop), Codec(schema), number)
