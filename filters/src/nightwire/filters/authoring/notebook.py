"""The Python in a notebook, and the cell and line of each submitted line.  Pure."""

import ast
import json
import re
import tokenize
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO

from nightwire.filters.authoring.definitions import bound_names, definitions
from nightwire.filters.language import FilterError

PYTHON_MAGICS = {"%%time", "%%timeit", "%%capture"}
"""Cell magics below which lies Python."""

NO_PYTHON = re.compile(r"[%!]|\?{1,2}[\w.%]|%{0,2}[\w.*]+(\[[^\]]*\])*\?{1,2}\s*$")
"""How a line of IPython's begins that is no Python: a magic, a command of the shell, a question."""

LINE = re.compile(r"\bline (\d+)\b")


@dataclass(frozen=True)
class Cell:
    """A code cell.

    Attributes:
        number: Jupyter's execution count; of a cell that was not run, its place in the notebook.
        text: Its source.
    """

    number: int
    text: str


def python_of(text: str, *, notebook: bool) -> str:
    """Return the Python in a script or in a notebook's code cells, without IPython's magics.

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


def is_python(cell: str) -> bool:
    """Return whether a cell parses: a session's history has the mistyped ones, too."""
    return _parses(_without_magics(cell))


def _without_magics(cell: str) -> str:
    if cell.lstrip().startswith("%%"):
        first, _, rest = cell.lstrip().partition("\n")
        return _without_magics(rest) if first.split()[0] in PYTHON_MAGICS else ""
    return cell if _parses(cell) else "\n".join(_plain(cell.splitlines()))


def _parses(code: str) -> bool:
    try:
        ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _plain(lines: Iterable[str]) -> Sequence[str]:
    """Return *lines* with ``pass`` in place of IPython's magics, commands of the shell and
    questions, which begin where a statement may.
    """
    found: list[str] = []
    for line in lines:
        stripped = line.lstrip()
        magic = NO_PYTHON.match(stripped) is not None and not _is_open(found)
        found.append(f"{line[: len(line) - len(stripped)]}pass" if magic else line)
    return found


def _is_open(lines: Sequence[str]) -> bool:
    """Return whether *lines* end inside a bracket, a string or a statement that goes on."""
    try:
        list(tokenize.generate_tokens(StringIO("\n".join([*lines, ""])).readline))
    except tokenize.TokenError:
        return True
    except SyntaxError:  # of a line before: Python will say so
        return False
    return False


@dataclass(frozen=True)
class SourceMap:
    """The owner's names of the lines of a submitted source.

    Attributes:
        names: Such as ``cell 4, line 2``, by the line's number in the submitted source.
    """

    names: Mapping[int, str] = field(default_factory=dict)

    def translate(self, reasons: Iterable[str]) -> list[str]:
        """Return *reasons* with the owner's names of their lines."""
        return [LINE.sub(self._name, reason) for reason in reasons]

    def _name(self, line: re.Match[str]) -> str:
        return self.names.get(int(line[1]), line[0])


def code_cells(text: str) -> list[Cell]:
    """Return the code cells of a notebook, given as JSON text."""
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    return [
        Cell(cell.get("execution_count") or number, "".join(cell["source"]))
        for number, cell in enumerate(cells, 1)
    ]


def source_map(source: str, script: str, cells: Sequence[Cell] = ()) -> SourceMap:
    """Return the owner's names of the lines of *source*.

    Args:
        source: The submitted part of *script*.
        script: The Python that its owner wrote: a script, or the joined cells of a notebook.
        cells: Those cells; none for a script.
    """
    names = list(_cell_lines(cells))
    lines = _lines(ast.parse(source), script)
    if not cells:
        return SourceMap({line: f"line {own}" for line, own in lines})
    return SourceMap({line: names[own - 1] for line, own in lines if own <= len(names)})


def _lines(source: ast.Module, script: str) -> Iterator[tuple[int, int]]:
    """Yield the lines of the submitted source, each with its line in the script."""
    tree = ast.parse(script)
    known = {one.name: one for one in definitions(tree, script)}
    functions = {node.lineno for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    for node in source.body:
        name = next((one for one in sorted(_names(node)) if one in known), None)
        if name is None:
            continue
        begin = known[name].line
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
            yield line, begin + (line - node.lineno if begin in functions else 0)


def _names(node: ast.stmt) -> set[str]:
    return {node.name} if isinstance(node, ast.FunctionDef | ast.ClassDef) else bound_names(node, set())


def _cell_lines(cells: Sequence[Cell]) -> Iterator[str]:
    """Yield the name of each line of the cells, one cell after the other."""
    for cell in cells:
        python = join_cells([cell.text])
        left_out = len(cell.text.splitlines()) - len(python.splitlines())
        for line in range(1, len(python.split("\n")) + 1):
            yield f"cell {cell.number}, line {line + max(0, left_out)}"
