"""The Python in a notebook, without what only IPython understands.  Pure."""

import ast
import json
from collections.abc import Iterable, Iterator

from nightwire.filters.language import FilterError

TIMED = {"%%time", "%%timeit", "%%capture"}
"""Cell magics below which lies Python."""


def code_of(text: str, *, notebook: bool) -> str:
    """Return the Python in a file: all of a script, the code cells of a notebook, without IPython's magics.

    Raises:
        FilterError: It is no notebook.
    """
    if not notebook:
        return text
    try:
        cells = json.loads(text)["cells"]
        sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError) as error:
        raise FilterError(f"this is no Jupyter notebook: {type(error).__name__}: {error}") from error
    return joined(sources)


def joined(cells: Iterable[str]) -> str:
    """Return the Python of some code cells."""
    return "\n".join(_without_magics(cell) for cell in cells)


def sound(cells: Iterable[str]) -> Iterator[str]:
    """Yield those of *cells* that are Python at all: a session's history has the mistyped ones, too."""
    for cell in cells:
        try:
            ast.parse(_without_magics(cell))
        except SyntaxError:
            continue
        yield cell


def _without_magics(cell: str) -> str:
    if cell.lstrip().startswith("%%"):
        first, _, rest = cell.lstrip().partition("\n")
        return _without_magics(rest) if first.split()[0] in TIMED else ""
    return "\n".join(_plain(cell.splitlines()))


def _plain(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        stripped = line.lstrip()
        magic = stripped.startswith(("%", "!")) or stripped.rstrip().endswith("?")
        yield f"{line[: len(line) - len(stripped)]}pass" if magic else line
