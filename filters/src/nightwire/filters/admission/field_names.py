"""The names that a filter asks its alerts for, held against the schemas of these alerts."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from nightwire.filters.language import AskedFields
from nightwire.filters.language.operations import CANONICAL
from nightwire.filters.language.vector import schemas_of
from nightwire.filters.model.chains import is_derived
from nightwire.filters.reading.recent import Sample
from nightwire.filters.reading.requirements import schema_fields
from nightwire.schemas import (
    AlertDecoder,
    AlertView,
    Point,
    SchemaRegistry,
    UnknownSchemaError,
    sim_alert_schema,
    survey,
)
from nightwire.schemas.survey_model import MATCH_MARK
from nightwire.schemas.topics import alerts

ATTRIBUTES = frozenset(name for name in dir(AlertView) if not name.startswith("_"))
"""What every alert has, whatever its survey."""
POINTS = frozenset(name for kind in (Point, list) for name in dir(kind) if not name.startswith("_"))
"""What its history has, a list, and each of its points."""


@dataclass(frozen=True)
class SchemaNames:
    """The dotted paths of a schema's fields: of records, and of all others."""

    records: frozenset[str]
    leaves: frozenset[str]

    def has(self, path: str) -> bool:
        """Return whether there is such a field, or one that may hold such names, as a map does."""
        return path in self.records or not self.leaves.isdisjoint(_beginnings(path.split(".")))


@dataclass(frozen=True)
class SurveySchemas:
    """The known versions of the schema of one survey's alerts; none where none is known."""

    survey: str
    versions: Sequence[SchemaNames] = ()

    def count(self, path: str) -> int:
        """Return how many versions have a field at the dotted *path*."""
        return sum(one.has(path) for one in self.versions)


def unknown_names(asked: AskedFields, known: Sequence[SurveySchemas]) -> Iterator[str]:
    """Yield the objections to names that no schema has.  Pure.

    Nothing is said of a field while the schemas of a survey that may have it are not known.
    """
    for name, line in asked.attributes.items():
        if name not in ATTRIBUTES:
            yield f"line {line}: an alert has no attribute {name}{_suggestion(name, ATTRIBUTES)}"
    for name, line in asked.points.items():
        if name not in POINTS:
            yield f"line {line}: a point of the history has no attribute {name}{_suggestion(name, POINTS)}"
    told = [one for one in known if one.versions]
    for path, line in asked.fields.items():
        if path.startswith(MATCH_MARK):
            continue
        if told and not any(one.count(path) for one in told) and not _may_be_elsewhere(path, known):
            of = " or ".join(one.survey for one in told)
            yield f"line {line}: alerts of {of} have no field {path}{_near(path, told)}"


def partial_names(asked: AskedFields, known: Sequence[SurveySchemas]) -> Iterator[str]:
    """Yield remarks on names that only some schemas have.  Pure."""
    fields = [path for path in asked.fields if not path.startswith(MATCH_MARK)]
    for path in fields:
        for one in known:
            count, versions = one.count(path), len(one.versions)
            if versions and not count:
                yield f"alerts of {one.survey} have no {path}"
            elif count < versions:
                yield f"only {count} of {versions} versions of {one.survey}'s schema have {path}"
    if fields and known and not any(one.versions for one in known):
        of = " or ".join(one.survey for one in known)
        yield f"the names of its fields were not checked: no schema of {of} is known yet"


def known_schemas(
    registry: SchemaRegistry, surveys: Sequence[str], sources: Sequence[str], samples: Sequence[Sample]
) -> list[SurveySchemas]:
    """Return the schemas of the alerts that a filter reads.

    What other filters send on may have fields more or less than its survey's schemas: of these
    alerts, those that came lately say which.

    Args:
        registry: Knows schemas; where it has none of a survey, its alerts may bring theirs along.
        surveys: Whose alerts it judges.
        sources: The topics in which they lie; none for the surveys' own.
        samples: Some of these alerts.
    """
    derived, found = any(map(is_derived, sources)), []
    for name in surveys:
        values = [value for whose, value in samples if whose == name]
        schemas = [*_versions(registry, name)]
        if derived or not schemas:
            came = [schema for _, schema in schemas_of(values, AlertDecoder(registry))]
            schemas = [*came, *schemas] if came else []
        known = schemas or ([] if derived else _built_in(name))
        found.append(SurveySchemas(name, [*map(schema_names, known)]))
    return found


def _versions(registry: SchemaRegistry, name: str) -> Iterator[Mapping[str, Any]]:
    """Yield the versions of the schema of a survey's alerts that the registry has."""
    subject = f"{alerts(name)}-value"
    with suppress(UnknownSchemaError):  # none came yet, or the registry is away
        newest, _, schema = registry.latest(subject)
        yield schema
        for version in range(1, newest):
            with suppress(UnknownSchemaError):  # it was deleted
                yield registry.version(subject, version)[2]


def _built_in(name: str) -> list[Mapping[str, Any]]:
    return [sim_alert_schema()] if name == "sim" else []


def schema_names(schema: Mapping[str, Any]) -> SchemaNames:
    """Return the dotted paths of an Avro schema's fields."""
    leaves = schema_fields(schema).leaves
    records = (path for steps in leaves for path in _beginnings(steps[:-1]))
    return SchemaNames(frozenset(records), frozenset(map(".".join, leaves)))


def _beginnings(steps: Sequence[str]) -> Iterator[str]:
    return (".".join(steps[:end]) for end in range(1, len(steps) + 1))


def _may_be_elsewhere(path: str, known: Sequence[SurveySchemas]) -> bool:
    """Return whether a field lies in a record that only surveys without known schemas have."""
    root = path.partition(".")[0]
    silent = (survey(one.survey).description.source.path for one in known if not one.versions)
    told = {record for one in known for version in one.versions for record in version.records}
    return root not in told and root in {path.partition(".")[0] for path in silent}


def _near(path: str, told: Sequence[SurveySchemas]) -> str:
    """Return the name that was meant: one that all surveys have, or one beside it, or another."""
    record, _, last = path.rpartition(".")
    if found := get_close_matches(last, CANONICAL, 1, 0.8):
        return f"; did you mean {found[0]}, which all surveys have?"
    names = {name for one in told for version in one.versions for name in version.records | version.leaves}
    beside = {name.rpartition(".")[2]: name for name in names if name.rpartition(".")[0] == record}
    if near := get_close_matches(last, sorted(beside), 1):
        return f"; did you mean {beside[near[0]]}?"
    return "" if record in names else _suggestion(path, frozenset(names))


def _suggestion(name: str, known: frozenset[str]) -> str:
    near = get_close_matches(name, sorted(known), 1)
    return f"; did you mean {near[0]}?" if near else ""
