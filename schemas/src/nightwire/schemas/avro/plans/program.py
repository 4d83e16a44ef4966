"""Programs: what an engine executes for a schema or a pair of them, decided once.

A program is a list of nodes that refer to one another by index, so that recursion is nothing
special.  A *layout* says how a value is written, a *plan* how what was written is read.  The nodes,
by their ``op``, as JSON has them:

- ``null``, ``boolean``, ``int``, ``long``, ``float``, ``double``, ``bytes``, ``string``; ``fixed``
  with its ``size``; ``enum`` with its ``symbols`` (in a plan null where the reader has none, and
  ``writer_symbols`` to name it).
- ``array`` of the node ``items``; ``map`` of the node ``values``; ``union`` of the nodes
``branches``. - ``record`` with ``name`` and ``fields``, in the order of the bytes, each with
``name`` and
  ``type``, its node.  In a layout a field may have a ``default``, the index of a constant.  In a
  plan a field without a name is passed over; ``absent`` fields, which were not written, are each a
  ``name`` and a ``constant``; ``order`` lists the names where it is another than these.
- In plans alone: ``nan`` for a null; a ``constant`` for a null; ``scale``, the number of the node
  ``of`` times ``factor`` plus ``offset``; ``refuse``, an error with ``why`` in place of the node
  ``of``.

``as`` names the reader's type of a promoted value; ``logical`` is the index of the converter of a
logical type, ``logical_name`` what it is called.  `generated.reference_reader` executes plans in
the plainest way.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

Node = Mapping[str, Any]
Converter = Callable[[Any], Any]


@dataclass(frozen=True)
class Program:
    """A layout or a plan.

    Attributes:
        root: Index of the first node.
        nodes: What to do; each refers to others by index.
        constants: Python values that nodes refer to by index: defaults.
        converters: Functions of one argument that nodes refer to by index: logical types.
        partial: Whether bytes may follow what the program reads.
    """

    root: int
    nodes: Sequence[Node]
    constants: Sequence[Any] = ()
    converters: Sequence[Converter] = ()
    partial: bool = False

    @cached_property
    def document(self) -> dict[str, Any]:
        """The same as it goes to the native engine, as JSON: without constants and converters."""
        made = {"root": self.root, "nodes": list(self.nodes)}
        return made | {"partial": True} if self.partial else made


class Draft:
    """A program that is being put together."""

    def __init__(self) -> None:
        self.nodes: list[dict[str, Any]] = []
        self.constants: list[Any] = []
        self.converters: list[Converter] = []

    def add(self, op: str, **more: Any) -> int:
        """Add a node, and return its index."""
        self.nodes.append({"op": op, **more})
        return len(self.nodes) - 1

    def constant(self, value: Any) -> int:
        """Add a constant, and return its index."""
        self.constants.append(value)
        return len(self.constants) - 1

    def converter(self, convert: Converter) -> int:
        """Add a converter, and return its index."""
        self.converters.append(convert)
        return len(self.converters) - 1

    def program(self, root: int) -> Program:
        """Return the program that begins with the node *root*."""
        return Program(root, self.nodes, self.constants, self.converters)


def parts(node: Node) -> list[int]:
    """Return the indices of the nodes that *node* refers to."""
    alone = [node[key] for key in ("items", "values", "of") if key in node]
    return [*alone, *node.get("branches", ()), *(field["type"] for field in node.get("fields", ()))]


def recursive(program: Program) -> bool:
    """Whether a node can be reached from itself."""
    done: set[int] = set()

    def returns(at: int, above: frozenset[int]) -> bool:
        if at in above or at in done:
            return at in above
        found = any(returns(part, above | {at}) for part in parts(program.nodes[at]))
        done.add(at)
        return found

    return returns(program.root, frozenset())
