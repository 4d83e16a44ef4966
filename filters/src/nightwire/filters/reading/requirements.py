"""The fields that filters read, and so how each of them can be judged.  Pure.

The fields that a filter in Python may read follow from the names that its source mentions, which
were found when it was accepted.  It is a guess: a filter that asks for a field that was not read is
judged anew on whole alerts.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from nightwire.filters.language import Program, SchemaFields, schema_fields
from nightwire.filters.model.live_filter import LiveFilter
from nightwire.filters.model.text_facts import TextFacts, canonical_mentioned
from nightwire.schemas import AlertTable, survey
from nightwire.schemas.survey_model import MATCH_MARK

UNREAD = "among the fields that are read here"
"""What the error says of a field that was not read."""


def named_columns(facts: TextFacts) -> tuple[str, ...] | None:
    """Return the columns that a function of columns names, whatever the schema; None for others."""
    if facts.columns is None:
        return None
    mentioned = facts.mentioned or frozenset()
    paths = [
        name for name in sorted(mentioned) if "." in name and all(map(str.isidentifier, name.split(".")))
    ]
    return tuple(dict.fromkeys(["id", *canonical_mentioned(mentioned), *facts.matches, *paths]))


PRESENCE = "?"
"""Ends the name of a record of which only the presence matters; some field of it tells."""

NumberedFilter = tuple[int, LiveFilter]
"""A filter and its number in the filter set."""


@dataclass(frozen=True)
class ColumnRequirements:
    """The columns that filters need, and how each filter can be judged.

    Attributes:
        programs: Filters that are judged over columns.
        narrow: Filters that are judged alert by alert, from columns.
        wide: Filters that want the whole alert: it is not known what they read.
        fields: Dotted paths of all columns.
        matches: Names of the columns and records that catalogues add to them.
    """

    programs: Sequence[NumberedFilter]
    narrow: Sequence[NumberedFilter]
    wide: Sequence[NumberedFilter]
    fields: Sequence[str]
    matches: Sequence[str] = ()


@dataclass
class SurveyKnowledge:
    """The schemas of a survey's alerts and the filters' fields, as found so far; it grows.

    Attributes:
        schemas: The fields of the schemas that were met, by id; and
        written: these schemas.
        unfit: Dotted paths that cannot be read as columns: who reads them gets whole alerts.
        wide: Filters, by key and version, that asked for something that was not read: they get
            whole alerts.
    """

    schemas: dict[int, SchemaFields] = field(default_factory=dict)
    written: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    unfit: set[str] = field(default_factory=set)
    wide: set[tuple[str, int]] = field(default_factory=set)
    _present: dict[tuple[int, tuple[str, ...]], list[str]] = field(default_factory=dict)

    def meet(self, number: int, schema: Mapping[str, Any]) -> None:
        """Take in a schema that was not met before."""
        self.schemas[number], self.written[number] = schema_fields(schema), schema

    def present(self, names: tuple[str, ...], name: str) -> Iterator[str]:
        """Yield the paths of fields that tell whether records *names* (``diaObject?``) exist."""
        for number, schema in self.written.items():
            if (number, names) not in self._present:
                self._present[number, names] = AlertTable.fields(names, survey(name), schema)
            yield from self._present[number, names]


def column_requirements(
    filters: Iterable[NumberedFilter], name: str, known: SurveyKnowledge
) -> ColumnRequirements:
    """Return the requirements of *filters* on the alerts of survey *name*.

    Args:
        filters: Those that judge it.
        name: Of the survey.
        known: What is known of its alerts.
    """
    kinds: tuple[list[NumberedFilter], list[NumberedFilter], list[NumberedFilter]] = ([], [], [])
    names: dict[str, None] = {}
    for number, live in filters:
        read = fields_read(live, known)
        unfit = read is not None and not known.unfit.isdisjoint(column_paths(read, name))
        if read is None or (unfit and live.text_facts.columns is None):
            names |= dict.fromkeys((*live.text_facts.canonical, *live.text_facts.matches))
            kinds[0 if not live.entry else 2].append((number, replace(live, fields=())))
        else:
            names |= dict.fromkeys(read)
            kinds[0 if live.program else 1].append((number, replace(live, fields=read)))
    records = tuple(one for one in names if one.endswith(PRESENCE))
    found = dict.fromkeys([*column_paths(tuple(names), name), *known.present(records, name)])
    fields = [path for path in found if path not in known.unfit]
    return ColumnRequirements(*kinds, fields, [one for one in names if one.startswith(MATCH_MARK)])


def fields_read(live: LiveFilter, known: SurveyKnowledge) -> tuple[str, ...] | None:
    """Return the names of the fields that a filter reads; None for the whole alert."""
    if live.program:
        return load_program(live.program).names
    mentioned, over_columns = live.text_facts.mentioned, live.text_facts.columns is not None
    if (live.key, live.version) in known.wide and not over_columns:
        return None
    if live.fields:
        return live.fields
    if mentioned is None:
        return None
    own = (path for one in known.schemas.values() for path in one.mentioned(mentioned))
    canonical = canonical_mentioned(mentioned)
    return tuple(dict.fromkeys(["id", *canonical, *live.text_facts.matches, *own]))


@lru_cache(maxsize=4096)
def load_program(text: str) -> Program:
    """Return a compiled filter."""
    return Program.loads(text)


@lru_cache(maxsize=4096)
def column_paths(names: tuple[str, ...], name: str) -> list[str]:
    """Return the dotted paths that *names* stand for in survey *name*."""
    return [path for path in AlertTable.fields(names, survey(name)) if not path.endswith(PRESENCE)]
