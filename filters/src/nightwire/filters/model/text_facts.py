"""The facts of a filter's text, found once, when it is accepted: batches read no source.  Pure."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

from nightwire.filters.language import (
    FilterError,
    Program,
    all_names,
    column_arguments,
    compile_python,
    compile_sql,
    imported_packages,
    instrumented_copy,
    matches_called,
    mentioned_names,
    parsed,
    sql_conditions,
    without_surrogates,
)
from nightwire.filters.model.transform import AddedField, declared_fields
from nightwire.schemas.survey_model import ALERT_ATTRIBUTES, MATCH_MARK, MEASUREMENT_ATTRIBUTES, MatchName

MAX_PROBED = 100_000
"""Longest text whose conditions are told apart. [character]"""


@dataclass(frozen=True)
class Probe:
    """The programs or the instrumented copy that find the condition that stopped an alert.

    Attributes:
        conditions: Of the filter.
        texts: Programs, one for each condition, of which the first that is not true stopped the
            alert; or
        numbered: one alone that returns the number of the condition that did, from 1, and 0 for
            none.
        source: The instrumented copy of a filter that is code, which returns the same.
    """

    conditions: tuple[str, ...]
    texts: tuple[str, ...] = ()
    numbered: bool = False
    source: str = ""

    def with_versions(self, names: Mapping[str, str]) -> "Probe":
        """Return the same for catalogues in some versions."""
        return replace(self, texts=tuple(one.renamed(names).dumps() for one in self.programs))

    @cached_property
    def programs(self) -> list[Program]:
        """The programs."""
        return [Program.loads(text) for text in self.texts]


@dataclass(frozen=True)
class TextFacts:
    """What engines know of a filter's text.

    Attributes:
        imports: Packages that it imports.
        mentioned: Names that it mentions; None where it may read any field.
        adds: The fields that its transform declares.
        probe: What finds the condition that stopped an alert; None where they cannot be told apart.
        columns: Columns that it is given, none: a table; None where it is given alert by alert.
        canonical: The canonical values that it names, whatever else it may read.
        matches: Catalogues and maps that it asks for (`MatchName`); once it is accepted, in the
            versions that it was accepted with.
    """

    imports: frozenset[str] = frozenset()
    mentioned: frozenset[str] | None = None
    adds: tuple[AddedField, ...] = ()
    probe: Probe | None = None
    columns: tuple[str, ...] | None = None
    canonical: tuple[str, ...] = ()
    matches: tuple[str, ...] = ()

    def with_versions(self, names: Mapping[str, str]) -> "TextFacts":
        """Return them with the versions of *matches*: a name with its version, by that without."""
        matches = tuple(names.get(one, one) for one in self.matches)
        return replace(self, matches=matches, probe=self.probe and self.probe.with_versions(names))

    def dumps(self) -> str:
        """Return them as JSON text."""
        names = None if self.mentioned is None else sorted(self.mentioned)
        return json.dumps(asdict(self) | {"imports": sorted(self.imports), "mentioned": names})


@lru_cache(maxsize=4096)
def load_facts(text: str) -> TextFacts:
    """Return the facts of a result of `TextFacts.dumps`; of none, those of an empty text."""
    if not text:
        return TextFacts()
    found = json.loads(text)
    mentioned, probe, columns = found["mentioned"], found["probe"], found.get("columns")
    return TextFacts(
        frozenset(found["imports"]),
        None if mentioned is None else frozenset(mentioned),
        tuple(AddedField(**one) for one in found["adds"]),
        None if probe is None else Probe(**{key: _tupled(value) for key, value in probe.items()}),
        _tupled(columns),
        tuple(found.get("canonical", ())),
        tuple(found.get("matches", ())),
    )


def _tupled(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def text_facts(request: Mapping[str, Any], *, compiled: bool) -> TextFacts:
    """Return the facts of the text of a request.

    Args:
        request: Has language, source, entry, survey, transform.
        compiled: Whether it is judged over columns.

    Raises:
        FilterError: Its source does not parse, or its transform declares nothing.
    """
    probe = _probe(request, compiled=compiled)
    if request["language"] == "sql":
        return TextFacts(probe=probe)
    tree, transform = parsed(request["source"]), request.get("transform") or ""
    functions = [name for name in (request["entry"], transform) if name]
    adds = declared_fields(request["source"]) if transform else ()
    columns, imports = column_arguments(tree, request["entry"]), imported_packages(tree)
    matches = tuple(matches_called(tree))
    if columns is not None:
        imports |= {"pandas"} if columns else set()
        return TextFacts(imports, all_names(tree), adds, None, columns, matches=matches)
    mentioned = None if compiled else mentioned_names(tree, *functions)
    canonical = () if compiled else tuple(canonical_mentioned(all_names(tree)))
    return TextFacts(imports, mentioned, adds, probe, canonical=canonical, matches=matches)


def matches_named(names: Iterable[str]) -> list[str]:
    """Return the matches and maps that columns of some *names* belong to."""
    found = (str(MatchName.parse(name)) for name in names if name.startswith(MATCH_MARK))
    return [*dict.fromkeys(found)]


CANONICAL = (*ALERT_ATTRIBUTES, "light_curve", "colour", "magnitudes", "healpix_at", "stamps")
"""Names of an alert's canonical values; those of its history come beside."""


def canonical_mentioned(mentioned: frozenset[str]) -> list[str]:
    """Return the mentioned canonical values, as `AlertTable.fields` names them."""
    found = [name for name in CANONICAL if name in mentioned]
    if "history" in mentioned:
        found += [
            f"history.{name}" for name in MEASUREMENT_ATTRIBUTES if name in mentioned or name == "mjd_tai"
        ]
    return found


def _probe(request: Mapping[str, Any], *, compiled: bool) -> Probe | None:
    source, entry = request["source"], request["entry"]
    if len(source) > MAX_PROBED:
        return None
    try:
        if request["language"] == "sql":
            parts = sql_conditions(source)
            programs = [compile_sql(part, request["survey"]).dumps() for part in parts]
            return Probe(tuple(parts), tuple(programs))
        copy, conditions = instrumented_copy(source, entry)
        found = tuple(map(without_surrogates, conditions))
        if compiled:
            return Probe(found, (compile_python(copy, entry).dumps(),), numbered=True)
    except (FilterError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return Probe(found, source=copy)
