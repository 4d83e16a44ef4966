"""What the filters of a survey want to read, and so how each of them can be judged.  Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from nightwire.filters._judge import LiveFilter
from nightwire.filters._mentions import Fields, canonical, fields, mentions
from nightwire.filters.language import Program
from nightwire.schemas import AlertTable, survey

PRESENCE = "?"
"""Ends the name of a record that is asked for its presence alone; some field of it tells."""

Numbered = tuple[int, LiveFilter]
"""A filter and its number in the filter set."""


@dataclass(frozen=True)
class Wishes:
    """Who reads what.

    Attributes:
        programs: Filters that are judged over columns.
        narrow: Filters that are judged alert by alert, from columns.
        wide: Filters that want the whole alert: it is not known what they read.
        fields: Dotted paths of all columns.
    """

    programs: Sequence[Numbered]
    narrow: Sequence[Numbered]
    wide: Sequence[Numbered]
    fields: Sequence[str]


@dataclass
class Knowledge:
    """What was found out of a survey's alerts while they were read; it grows.

    Attributes:
        schemas: The fields of the schemas that were met, by id; and
        written: these schemas.
        unfit: Dotted paths that cannot be read as columns: who reads them gets whole alerts.
        wide: Filters, by key and version, that asked for something that was not read: they get whole alerts.
    """

    schemas: dict[int, Fields] = field(default_factory=dict)
    written: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    unfit: set[str] = field(default_factory=set)
    wide: set[tuple[str, int]] = field(default_factory=set)
    _present: dict[tuple[int, tuple[str, ...]], list[str]] = field(default_factory=dict)

    def meet(self, number: int, schema: Mapping[str, Any]) -> None:
        """Take in a schema that was not met before."""
        self.schemas[number], self.written[number] = fields(schema), schema

    def present(self, names: tuple[str, ...], name: str) -> Iterator[str]:
        """Yield the dotted paths that tell whether the records *names* (``diaObject?``) are there."""
        for number, schema in self.written.items():
            if (number, names) not in self._present:
                self._present[number, names] = AlertTable.fields(names, survey(name), schema)
            yield from self._present[number, names]


def wishes(filters: Iterable[Numbered], name: str, known: Knowledge) -> Wishes:
    """Return what *filters* want of the alerts of survey *name*.

    Args:
        filters: Those that judge it.
        name: Of the survey.
        known: What is known of its alerts.
    """
    kinds: tuple[list[Numbered], list[Numbered], list[Numbered]] = ([], [], [])
    names: dict[str, None] = {}
    for number, live in filters:
        read = reads(live, known)
        if read is None or not known.unfit.isdisjoint(paths(read, name)):
            kinds[0 if not live.entry else 2].append((number, replace(live, fields=())))
        else:
            names |= dict.fromkeys(read)
            kinds[0 if live.program else 1].append((number, replace(live, fields=read)))
    asked = tuple(one for one in names if one.endswith(PRESENCE))
    found = dict.fromkeys([*paths(tuple(names), name), *known.present(asked, name)])
    return Wishes(*kinds, [path for path in found if path not in known.unfit])


def reads(live: LiveFilter, known: Knowledge) -> tuple[str, ...] | None:
    """Return the names of what a filter reads; None where it wants the whole alert."""
    if live.program:
        return program(live.program).names
    if (live.key, live.version) in known.wide:
        return None
    if live.fields:
        return live.fields
    mentioned = mentions(live.source, live.entry)
    if mentioned is None or (live.transform and mentions(live.source, live.transform) is None):
        return None
    own = (path for one in known.schemas.values() for path in one.mentioned(mentioned))
    return tuple(dict.fromkeys(["id", *canonical(mentioned), *own]))


@lru_cache(maxsize=4096)
def program(text: str) -> Program:
    """Return a compiled filter."""
    return Program.loads(text)


@lru_cache(maxsize=4096)
def paths(names: tuple[str, ...], name: str) -> list[str]:
    """Return the dotted paths that *names* stand for in survey *name*."""
    return [path for path in AlertTable.fields(names, survey(name)) if not path.endswith(PRESENCE)]
