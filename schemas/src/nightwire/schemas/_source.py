"""Python source that is being written, and what it refers to."""

import linecache
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

_NUMBERS = count()


class Source:
    """Lines of Python, and the namespace in which they run.

    No text of a schema gets into the lines but as a literal (`repr`); everything else is referred to by
    names that are made here.
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
