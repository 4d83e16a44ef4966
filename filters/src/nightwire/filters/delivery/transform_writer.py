"""The messages of transforms: alerts decoded by their schema, and encoded by a derived one."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nightwire.filters.model.transform import Transform, count_name, mean, mean_name
from nightwire.schemas import Codec, SchemaRegistry, derived_schema, kept_fields, survey, wire


@dataclass(frozen=True)
class TransformPlan:
    """How the alerts of one schema are transformed.

    Attributes:
        written: Reads them as they came.
        kept: Dotted paths of what is kept; None for all.
        means: For each mean its path, and the numbers that mean nothing there.
        made: Writes them.
        schema_id: The id of what it writes.
    """

    written: Codec
    kept: Sequence[str] | None
    means: Mapping[str, Sequence[float]]
    made: Codec
    schema_id: int

    def value(self, body: bytes, added: Mapping[str, Any]) -> bytes:
        """Return the message of an alert: its Avro *body* transformed, with the fields *added*.

        Raises:
            DecodeError: The body is malformed.
        """
        alert = self.written.decode(body, self.kept)
        return wire.frame(self.schema_id, self.made.encode({**alert, **self._means(body), **added}))

    def _means(self, body: bytes) -> dict[str, Any]:
        there = [path for path in self.means if self.written.has(path)]
        alert = self.written.decode(body, there) if there else {}
        found: dict[str, Any] = {}
        for path in there:
            array, _, name = path.rpartition(".")
            there_are = _at(alert, array)
            records = there_are if isinstance(there_are, list) else None  # none in this version
            found[count_name(path)] = None if records is None else len(records)
            found[mean_name(path)] = mean((one[name] for one in records or ()), self.means[path])
        return found


def register_derived(registry: SchemaRegistry, topic: str, schema: Mapping[str, Any]) -> int:
    """Return the id of a schema of what is made of a survey's alerts, and written to *topic*.

    Any may follow any: what the survey changes is not ours to refuse.
    """
    subject = f"{topic}-value"
    if registry.compatibility(subject) != "NONE":
        registry.set_compatibility("NONE", subject)
    return registry.register(subject, schema)


def open_transform_writer(registry: str, cache: Path) -> "TransformWriter":
    """Return a writer for the schema registry at a URL; *cache* is a folder for schemas."""
    return TransformWriter(SchemaRegistry(registry, cache_dir=cache))


@dataclass
class TransformWriter:
    """Transforms alerts; equal transforms share the message of the last alert.

    Args:
        registry: Knows the schemas of alerts, and gives derived ones their ids.
    """

    registry: SchemaRegistry
    _plans: dict[tuple[Any, ...], TransformPlan] = field(default_factory=dict)
    _contained: dict[str, Codec] = field(default_factory=dict)
    _last: tuple[bytes, dict[tuple[int, str], bytes]] = (b"", {})

    def value(self, value: bytes, topic: str, name: str, transform: Transform, added: str) -> bytes:
        """Return the message that a transform sends for an alert.

        Args:
            value: The alert's message.
            topic: To which it is sent.
            name: Its survey.
            transform: What becomes of it.
            added: What code computed, as JSON; empty for nothing.

        Raises:
            DecodeError: The alert is malformed.
            RegistryAwayError: The registry was away.
        """
        if self._last[0] != value:
            self._last = value, {}
        made, (plan, body) = self._last[1], self._plan(value, topic, name, transform)
        if (plan.schema_id, added) not in made:
            made[plan.schema_id, added] = plan.value(body, json.loads(added) if added else {})
        return made[plan.schema_id, added]

    def _plan(self, value: bytes, topic: str, name: str, transform: Transform) -> tuple[TransformPlan, bytes]:
        """Return the plan for an alert, and the alert's body."""
        written, body = self._written(value)
        key = (id(written), topic, name, transform)
        if key not in self._plans:
            self._plans[key] = self._made(written, topic, name, transform)
        return self._plans[key], body

    def _written(self, value: bytes) -> tuple[Codec, bytes]:
        """Return the codec of an alert as it came, one for each schema, and its body."""
        if not wire.is_container(value):
            number, body = wire.unframe(value)
            return self.registry.codec(number), body
        record = next(wire.read_container(value))
        text = json.dumps(record.schema, sort_keys=True)
        if text not in self._contained:
            self._contained[text] = Codec(record.schema)
        return self._contained[text], record.body

    def _made(self, written: Codec, topic: str, name: str, transform: Transform) -> TransformPlan:
        schema = derived_schema(written.schema, transform.drop, transform.fields())
        number = register_derived(self.registry, topic, schema)
        displaced = [one["name"] for one in transform.fields() if written.has(one["name"])]
        left_out = [*transform.drop, *displaced]
        kept = kept_fields(written.schema, left_out) if left_out else None
        absent = {one.path: one.absent for one in survey(name).description.history}
        means = {path: absent.get(path.rpartition(".")[0], ()) for path in transform.means}
        return TransformPlan(written, kept, means, Codec(schema), number)


def _at(alert: Any, path: str) -> Any:
    for step in path.split("."):
        alert = None if alert is None else alert.get(step)
    return alert
