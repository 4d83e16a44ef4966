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
    compile_python,
    compile_sql,
    objections,
)
from nightwire.filters.model.text_facts import text_facts

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
    """

    program: Program | None = None
    remarks: tuple[str, ...] = ()
    facts: str = ""
    asked: AskedFields = field(default_factory=AskedFields)

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
    facts = text_facts(request, compiled=found.program is not None).dumps()
    return replace(found, facts=facts, asked=_asked([*filter(None, functions)], request, found.program))


def _asked(entries: Sequence[str], request: Mapping[str, Any], program: Program | None) -> AskedFields:
    found = asked_fields(request["source"], entries, program)
    kinds = (found.fields, found.attributes, found.points)
    return AskedFields(*(dict([*kind.items()][:MAX_ASKED]) for kind in kinds))


def _compiled(request: Mapping[str, Any]) -> Compilation:
    if request.get("transform"):
        return Compilation(remarks=(f"{request['transform']}, which computes what is added",))
    if request["language"] == "sql":
        return Compilation(compile_sql(request["source"], request["survey"]))
    try:
        return Compilation(compile_python(request["source"], request["entry"]))
    except NotCompilable as error:
        return Compilation(remarks=tuple(error.reasons))
