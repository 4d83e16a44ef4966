"""Which condition of a filter stops alerts: a filter made of it that returns the condition's number.  Pure.

What stops most is of interest while a filter is live, and to ask must neither cost much nor let anything out.
So the question is put as a filter of its own, which is compiled, or contained, like any other.  Its
conditions are those that a trial shows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nightwire.filters._judge import LiveFilter
from nightwire.filters._sql_report import conditions
from nightwire.filters._stages import numbered
from nightwire.filters.language import FilterError, Program, compile_python, compile_sql

NAME = "-stopped"
"""Ends the name of a probe: no filter's, so that nothing of it is taken for the filter's own."""


@dataclass(frozen=True)
class Probe:
    """How to find out what stopped an alert.

    Attributes:
        conditions: Of the filter.
        programs: One for each condition, of which the first that is not true stopped the alert; or
        numbered: one alone that returns the number of the condition that did, from 1, and 0 for none.
        live: The same as a filter that is code, where it cannot be compiled.
    """

    conditions: Sequence[str]
    programs: Sequence[Program] = ()
    numbered: bool = False
    live: LiveFilter | None = None


def probe(live: LiveFilter, survey: str) -> Probe | None:
    """Return how to find out what stops alerts of *survey*; None where that cannot be asked."""
    try:
        if live.language == "sql":
            parts = conditions(live.source)
            return Probe(parts, [compile_sql(part, survey) for part in parts])
        source, found = numbered(live.source, live.entry)
        if live.program:
            return Probe(found, [compile_python(source, live.entry)], numbered=True)
    except (FilterError, SyntaxError, RecursionError):
        return None
    return Probe(found, live=replace(live, name=live.name + NAME, source=source, transform=""))
