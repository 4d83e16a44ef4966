"""What the engine makes of a filter before it tries it: its program, or why there is none.  Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nightwire.filters.language import FilterError


@dataclass(frozen=True)
class Compilation:
    """A filter, compiled as far as it can be.

    Attributes:
        program: The compiled expression as text; empty where the filter is judged row by row.
        fields: What it reads, as dotted paths and canonical names; empty for the whole alert.
        remarks: Why it is judged row by row.
    """

    program: str = ""
    fields: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def said(self) -> list[str]:
        """What its owner should know of how it is judged."""
        return [f"judged row by row, which is slower: {remark}" for remark in self.remarks]


def compiled(request: Mapping[str, Any]) -> Compilation:
    """Return the compilation of what *request* submits.

    Raises:
        FilterError: It is no filter.
    """
    if request["language"] == "sql":
        raise FilterError("SQL is not understood by this engine yet")
    return Compilation()
