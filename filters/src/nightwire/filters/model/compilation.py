"""The compilation of a submitted filter: its program, or why there is none.  Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nightwire.filters.language import NotCompilable, Program, compile_python, compile_sql


@dataclass(frozen=True)
class Compilation:
    """A filter, compiled as far as it can be.

    Attributes:
        program: The compiled expression; None where the filter is judged row by row.
        remarks: Why it is judged row by row.
    """

    program: Program | None = None
    remarks: tuple[str, ...] = ()

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
    if request.get("transform"):
        return Compilation(remarks=(f"{request['transform']}, which computes what is added",))
    if request["language"] == "sql":
        return Compilation(compile_sql(request["source"], request["survey"]))
    try:
        return Compilation(compile_python(request["source"], request["entry"]))
    except NotCompilable as error:
        return Compilation(remarks=tuple(error.reasons))
