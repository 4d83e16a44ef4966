"""The compilation of a submitted filter: its program, or why there is none.  Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nightwire.filters.language import (
    AskedFields,
    FilterError,
    NotCompilable,
    Program,
    asked_fields,
    column_arguments,
    compile_python,
    compile_sql,
    objections,
    parsed,
)
from nightwire.filters.language.names.asked_fields import SHARED_LISTS
from nightwire.filters.language.operations import CANONICAL
from nightwire.filters.model.text_facts import matches_named, text_facts

TABLE_ATTRIBUTES = frozenset({"frame", "values", "offsets", "counts", "alert", "min", "max", "sum", "mean"})
"""What tables of alerts, and their columns, have that alerts have not."""

MAX_ASKED = 200
"""Most names of fields that are held against schemas."""


@dataclass(frozen=True)
class Compilation:
    """A filter, compiled as far as it can be.

    Attributes:
        program: The compiled expression; None where the filter is judged row by row.
        remarks: Why it is judged row by row.
        facts: What else its text says (`TextFacts.dumps`).
        asked: The fields that it asks for, by their lines; the first of very many.
        over_columns: It is a function of columns itself.
    """

    program: Program | None = None
    remarks: tuple[str, ...] = ()
    facts: str = ""
    asked: AskedFields = field(default_factory=AskedFields)
    over_columns: bool = False

    @property
    def text(self) -> str:
        """The program as text; empty where there is none."""
        return self.program.dumps() if self.program else ""

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that it reads: dotted paths and canonical names; empty for the whole alert."""
        return self.program.names if self.program else ()

    @property
    def remark_lines(self) -> list[str]:
        """Remarks to its owner on the way it is judged."""
        if self.program:
            return ["compiled: judged over columns"]
        if self.over_columns:
            return ["judged over columns, many alerts at once"]
        return ["judged row by row, which is slower", *(f"because of {remark}" for remark in self.remarks)]


def compile_request(request: Mapping[str, Any]) -> Compilation:
    """Return the compilation of *request*'s language, source, entry and survey.

    Raises:
        FilterError: It is no filter.
    """
    functions = [request["entry"], request.get("transform")] if request["language"] == "python" else []
    for function in filter(None, functions):
        if reasons := objections(request["source"], function):
            raise FilterError(*reasons)
    found = _compiled(request)
    facts = text_facts(request, compiled=found.program is not None)
    named = matches_named(found.program.names if found.program else ())
    facts = replace(facts, matches=tuple(dict.fromkeys([*facts.matches, *named])))
    return replace(
        found, facts=facts.dumps(), asked=_asked([*filter(None, functions)], request, found.program)
    )


def _asked(entries: Sequence[str], request: Mapping[str, Any], program: Program | None) -> AskedFields:
    found = _asked_of(entries, request, program)
    kinds = (found.fields, found.attributes, found.points)
    return AskedFields(*(dict([*kind.items()][:MAX_ASKED]) for kind in kinds))


def _asked_of(entries: Sequence[str], request: Mapping[str, Any], program: Program | None) -> AskedFields:
    columns = _columns_given(request) if entries else None
    if columns:
        own = [one for one in columns if one.partition(".")[0] not in (*CANONICAL, *SHARED_LISTS)]
        return AskedFields(dict.fromkeys(own, 1))
    found = asked_fields(request["source"], entries, program)
    if columns is not None:
        for kind in (found.attributes, found.points):
            for name in TABLE_ATTRIBUTES & kind.keys():
                del kind[name]
    return found


def _compiled(request: Mapping[str, Any]) -> Compilation:
    if request["language"] == "python" and _columns_given(request) is not None:
        if request.get("transform"):
            raise FilterError("a transform goes with a function of one alert, not with one of columns")
        return Compilation(over_columns=True)
    if request.get("transform"):
        return Compilation(remarks=(f"{request['transform']}, which computes what is added",))
    if request["language"] == "sql":
        return Compilation(compile_sql(request["source"], request["survey"]))
    try:
        return Compilation(compile_python(request["source"], request["entry"]))
    except NotCompilable as error:
        return Compilation(remarks=tuple(error.reasons))


def _columns_given(request: Mapping[str, Any]) -> tuple[str, ...] | None:
    return column_arguments(parsed(request["source"]), request["entry"])
