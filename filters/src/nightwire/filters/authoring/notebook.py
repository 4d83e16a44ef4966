"""The Python in a notebook, without what only IPython understands.  Pure."""

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from nightwire.filters.authoring.definitions import bound_names, definitions
from nightwire.filters.language import FilterError

PYTHON_MAGICS = {"%%time", "%%timeit", "%%capture"}
"""Cell magics below which lies Python."""


def python_of(text: str, *, notebook: bool) -> str:
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
    return join_cells(sources)


def join_cells(cells: Iterable[str]) -> str:
    """Return the Python of some code cells."""
    return "\n".join(_without_magics(cell) for cell in cells)


def python_cells(cells: Iterable[str]) -> Iterator[str]:
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
        return _without_magics(rest) if first.split()[0] in PYTHON_MAGICS else ""
    return "\n".join(_plain(cell.splitlines()))


def _plain(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        stripped = line.lstrip()
        magic = stripped.startswith(("%", "!")) or stripped.rstrip().endswith("?")
        yield f"{line[: len(line) - len(stripped)]}pass" if magic else line


LINE = re.compile(r"\bline (\d+)\b")


@dataclass(frozen=True)
class Cell:
    """A code cell.

    Attributes:
        number: What Jupyter shows in brackets beside it; where it was not run, which of the code cells it is.
        text: What stands in it.
    """

    number: int
    text: str


@dataclass(frozen=True)
class SourceMap:
    """Knows where each line of what travels stands.

    Attributes:
        names: What the owner calls a line, by its number in the source that travels.
    """

    names: Mapping[int, str] = field(default_factory=dict)

    def told(self, reasons: Iterable[str]) -> list[str]:
        """Return *reasons*, their lines as the owner calls them."""
        return [self.says(one) or one for one in reasons]

    def says(self, reason: str | None) -> str | None:
        """Return *reason*, its lines as the owner calls them; None of None."""
        if reason is None:
            return None
        return LINE.sub(lambda found: self.names.get(int(found[1]), found[0]), reason)


def code_cells(text: str) -> list[Cell]:
    """Return the code cells of a notebook, given as JSON text."""
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    return [
        Cell(cell.get("execution_count") or number, "".join(cell["source"]))
        for number, cell in enumerate(cells, 1)
    ]


def source_map(source: str, script: str, cells: Sequence[Cell] = ()) -> SourceMap:
    """Return where the lines of *source* stand.

    Args:
        source: What travels of *script*.
        script: The Python that its owner wrote: a script, or the cells of a notebook one after the other.
        cells: Those cells; none for a script.
    """
    names = list(_cell_lines(cells))
    found = _lines(ast.parse(source), script)
    if not cells:
        return SourceMap({line: f"line {own}" for line, own in found})
    return SourceMap({line: names[own - 1] for line, own in found if own <= len(names)})


def _lines(travelling: ast.Module, script: str) -> Iterator[tuple[int, int]]:
    """Yield lines of what travels, each with its line in the script."""
    tree = ast.parse(script)
    known = {one.name: one for one in definitions(tree, script)}
    functions = {node.lineno for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    for node in travelling.body:
        name = next((one for one in sorted(_names(node)) if one in known), None)
        if name is None:
            continue
        begin = known[name].line
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
            yield line, begin + (line - node.lineno if begin in functions else 0)


def _names(node: ast.stmt) -> set[str]:
    return {node.name} if isinstance(node, ast.FunctionDef | ast.ClassDef) else bound_names(node, set())


def _cell_lines(cells: Sequence[Cell]) -> Iterator[str]:
    """Yield what the lines of the cells, one after the other, are called."""
    for cell in cells:
        left_out = len(cell.text.splitlines()) - len(join_cells([cell.text]).splitlines())
        for line in range(1, len(join_cells([cell.text]).split("\n")) + 1):
            yield f"cell {cell.number}, line {line + max(0, left_out)}"
