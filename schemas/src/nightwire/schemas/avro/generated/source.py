"""Generated Python source, and expressions that readers and row readers share."""

import linecache
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import Any

from nightwire.schemas.avro.plans.program import Node, Program

_NUMBERS = count()

LEARN_FIRST, LEARN_EVERY = 32, 256
"""The first rows of unknown types are learned, then every 256th: learning one takes 1 ms."""


def worth_learning(unknown: int) -> bool:
    """Whether source is to be generated for a row, the *unknown*-th for which there is none."""
    return unknown <= LEARN_FIRST or unknown % LEARN_EVERY == 0


class Source:
    """Lines of Python, and the namespace in which they run.

    No text of a schema gets into the lines but as a literal (`repr`); everything else is referred
    to by names that are made here.
    """

    def __init__(self, **names: Any) -> None:
        self.names: dict[str, Any] = names
        self._lines: list[str] = []
        self._indent = 0

    @property
    def text(self) -> str:
        """The source."""
        return "\n".join(self._lines) + "\n"

    def line(self, text: str) -> None:
        """Write a line."""
        self._lines.append("    " * self._indent + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Write a line that opens a block (``if x``), and indent what is written meanwhile."""
        self.line(f"{head}:")
        self._indent += 1
        yield
        self._indent -= 1

    def name(self, prefix: str, value: Any) -> str:
        """Return a name by which the source can refer to *value*."""
        made = f"{prefix}{len(self.names)}"
        self.names[made] = value
        return made

    def run(self) -> dict[str, Any]:
        """Run the source, and return its namespace.  Tracebacks show its lines."""
        file = f"<nightwire codec {next(_NUMBERS)}>"
        text = self.text
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        exec(compile(text, file, "exec"), self.names)  # noqa: S102  (our own source; see the class)
        return self.names


PROMOTED: Mapping[str, str] = {
    "long": "{}",
    "float": "float({})",
    "double": "float({})",
    "bytes": "{}.encode()",
    "string": "str({}, 'utf-8')",
}


def converted(source: Source, plan: Program, node: Node, text: str) -> str:
    """Return the expression of a value that is promoted and of a logical type, as its node says."""
    if "as" in node:
        text = PROMOTED[node["as"]].format(text)
    if "logical" in node:
        text = f"{source.name('convert', plan.converters[node['logical']])}({text})"
    return text


def scaled(node: Node, text: str) -> str:
    """Return the expression of a value that is converted."""
    return f"float({text}) * {float(node['factor'])!r} + {float(node['offset'])!r}"


def record_display(source: Source, plan: Program, node: Node, value: Callable[[int], str]) -> str:
    """Return the expression of a record: read fields, then absent ones, or in the node's order."""
    shown = {
        field["name"]: value(number)
        for number, field in enumerate(node["fields"])
        if field["name"] is not None
    }
    for field in node.get("absent", ()):
        shown[field["name"]] = constant(source, plan, field)
    names = node.get("order", shown)
    return "{" + ", ".join(f"{name!r}: {shown[name]}" for name in names) + "}"


def constant(source: Source, plan: Program, node: Node) -> str:
    """Return the expression of a constant; one that can be changed is copied each time."""
    value = plan.constants[node["constant"]]
    name = source.name("constant", value)
    return f"copied({name})" if isinstance(value, list | dict) else name
