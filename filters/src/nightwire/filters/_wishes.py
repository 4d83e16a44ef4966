"""What the filters of a survey want to read, and so how each of them can be judged.  Pure."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from nightwire.filters._judge import LiveFilter
from nightwire.filters.language import Program
from nightwire.schemas import AlertTable, survey

PRESENCE = "?"
"""Ends the name of what is asked for its presence alone; it is told by the fields around it."""

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


def wishes(filters: Iterable[Numbered], name: str, unfit: Collection[str] = ()) -> Wishes:
    """Return what *filters* want of the alerts of survey *name*.

    Args:
        filters: Those that judge it.
        name: Of the survey.
        unfit: Dotted paths that cannot be read as columns: who reads them gets whole alerts.
    """
    kinds: tuple[list[Numbered], list[Numbered], list[Numbered]] = ([], [], [])
    names: dict[str, None] = {}
    for number, live in filters:
        read = reads(live)
        whole = not read or not set(unfit).isdisjoint(paths(read, name))
        kind = 2 if whole and not (live.program and not live.entry) else 0 if live.program else 1
        kinds[kind].append((number, live))
        if kind < 2:
            names |= dict.fromkeys(read)
    return Wishes(*kinds, [path for path in paths(tuple(names), name) if path not in unfit])


def reads(live: LiveFilter) -> tuple[str, ...]:
    """Return the names of what a filter reads; none where that is not known."""
    return (*program(live.program).names, "id") if live.program else live.fields


@lru_cache(maxsize=4096)
def program(text: str) -> Program:
    """Return a compiled filter."""
    return Program.loads(text)


@lru_cache(maxsize=4096)
def paths(names: tuple[str, ...], name: str) -> list[str]:
    """Return the dotted paths that *names* stand for in survey *name*."""
    return [path for path in AlertTable.fields(names, survey(name)) if not path.endswith(PRESENCE)]
