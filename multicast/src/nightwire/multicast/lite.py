"""The lite form of alerts: without stamps and history, by a derived schema that is registered."""

import json
from typing import Any, NamedTuple

from nightwire.schemas import Codec, DecodeError, SchemaRegistry, derived_schema, kept_fields, wire
from nightwire.schemas import survey as survey_called


class _Form(NamedTuple):
    written: Codec
    kept: list[str]
    made: Codec
    schema_id: int


class LiteForm:
    """Makes alerts lite.

    Args:
        registry: Knows the schemas of alerts, and gives the derived ones their ids.
        survey: Whose alerts.
        topic: In which they lie.
    """

    def __init__(self, registry: SchemaRegistry, survey: str, topic: str) -> None:
        about = survey_called(survey).description
        stamps = [path.partition(".")[0] for path in about.stamps.values()]
        self._drop = [*stamps, *(one.path for one in about.history)]
        self._registry, self._subject = registry, f"multicast.{topic}-value"
        self._forms: dict[Any, _Form] = {}

    def __call__(self, value: bytes) -> bytes | None:
        """Return an alert's value in its lite form; None where it cannot be decoded.

        Raises:
            RegistryAwayError: The registry does not answer.
        """
        try:
            form, body = self._form(value)
            return wire.frame(form.schema_id, form.made.encode(form.written.decode(body, form.kept)))
        except DecodeError:
            return None

    def _form(self, value: bytes) -> tuple[_Form, bytes]:
        if wire.is_container(value):
            record = next(wire.read_container(value))
            name: Any = json.dumps(record.schema, sort_keys=True)
            body = record.body
        else:
            name, body = wire.unframe(value)
        if name not in self._forms:
            known = Codec(json.loads(name)) if isinstance(name, str) else self._registry.codec(name)
            self._forms[name] = self._made(known)
        return self._forms[name], body

    def _made(self, written: Codec) -> _Form:
        schema = derived_schema(written.schema, self._drop)
        # what the survey changes is not ours to refuse
        if self._registry.compatibility(self._subject) != "NONE":
            self._registry.set_compatibility("NONE", self._subject)
        number = self._registry.register(self._subject, schema)
        return _Form(written, kept_fields(written.schema, self._drop), Codec(schema), number)
