"""The names that a filter asks its alerts for, held against the schemas of these alerts.  Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from nightwire.filters.language.names.asked_fields import AskedFields, asked_fields
from nightwire.filters.language.names.schema_fields import schema_fields
from nightwire.filters.language.operations import CANONICAL
from nightwire.filters.language.program import Program
from nightwire.filters.language.sql import compile_sql
from nightwire.schemas import AlertView, Point, survey
from nightwire.schemas.survey_model import MATCH_MARK

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


def missing_names(
    text: str | Program | AskedFields, of_survey: str, schemas: Iterable[Mapping[str, Any]]
) -> list[str]:
    """Return the objections to a condition's fields that no schema of a survey has.

    Args:
        text: What stands behind WHERE; or a function of Python, compiled; or what one asks for.
        of_survey: Name of the survey.
        schemas: Those of its alerts, the newest first; no more are taken than are needed.

    Raises:
        FilterError: It is no condition.
    """
    program = compile_sql(text, of_survey) if isinstance(text, str) else text
    asked = program if isinstance(program, AskedFields) else asked_fields("", (), program)
    versions: list[SchemaNames] = []
    found: list[str] = []
    for schema in schemas:
        versions.append(schema_names(schema))
        if not (found := [*unknown_names(asked, [SurveySchemas(of_survey, versions)])]):
            break
    return found


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
    if last in names:
        return f"; did you mean the alert's own {last}?"
    return "" if record in names else _suggestion(path, frozenset(names))


def _suggestion(name: str, known: frozenset[str]) -> str:
    near = get_close_matches(name, sorted(known), 1)
    return f"; did you mean {near[0]}?" if near else ""
