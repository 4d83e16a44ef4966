"""The id of an alert's schema, where its message does not have it."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import fastavro.schema

from nightwire.schemas import SchemaError, SchemaRegistry, topics

Schema = Mapping[str, Any]


def survey_id(schema: Schema, survey: str) -> int | None:
    """Return the id of *schema* at *survey*: 100 x major + minor of its name.

    That is Rubin's rule, for names ``<survey>.v<major>_<minor>``; None for other names.
    """
    full = f"{schema.get('namespace') or ''}.{schema.get('name') or ''}".strip(".")
    match = re.match(rf"{re.escape(survey)}\.v(\d+)_(\d+)\b", full)
    return 100 * int(match[1]) + int(match[2]) if match else None


class SchemaIds:
    """Register schemas as they come, and remember their ids.

    Args:
        registry: Where schemas are registered.
        survey: That the alerts are of.
    """

    def __init__(self, registry: SchemaRegistry, survey: str) -> None:
        self._registry, self._survey = registry, survey
        self._ids: dict[str, int] = {}

    def id(self, schema: Schema) -> int:
        """Return the id of *schema*, registered under its topic's subject if need be.

        Raises:
            SchemaError: The registry does not take it, or has another one under its id.
        """
        text = json.dumps(schema, sort_keys=True)
        if text not in self._ids:
            self._ids[text] = self._registered(schema)
        return self._ids[text]

    def _registered(self, schema: Schema) -> int:
        number = survey_id(schema, self._survey)
        if number is not None and (known := self._registry.registered(number)) is not None:
            if canonical(known) == canonical(schema):
                return number
            raise SchemaError(f"the registry has another schema under id {number} than this file")
        subject = f"{topics.alerts(self._survey)}-value"
        return self._registry.register(subject, schema, schema_id=number)


def canonical(schema: Schema) -> str:
    """Return *schema* in Avro's canonical form, without what does not matter to reading."""
    return str(fastavro.schema.to_parsing_canonical_form(dict(schema)))


def schemas_in(path: Path) -> Iterator[Schema]:
    """Yield the schemas of alerts in the file or folder *path*, their references resolved.

    Schemas refer to one another by name; the file of ``lsst.v9_0.diaSource`` lies beside, and is
    called ``lsst.v9_0.diaSource.avsc``.

    Raises:
        SchemaError: There is none, or one cannot be read.
    """
    files = sorted(path.rglob("*.alert.avsc")) if path.is_dir() else [path]
    if not files:
        raise SchemaError(f"{path}: no file called *.alert.avsc in there")
    for file in files:
        try:
            loaded: Any = fastavro.schema.load_schema(str(file), _write_hint=False)
        except (OSError, ValueError, KeyError, fastavro.schema.SchemaParseException) as error:
            raise SchemaError(f"{file}: cannot be read as an Avro schema: {error}") from error
        yield {name: value for name, value in loaded.items() if not name.startswith("__")}
