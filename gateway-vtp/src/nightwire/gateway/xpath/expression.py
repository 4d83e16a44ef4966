"""The shape of an XPath 1.0 expression: what it looks at, and inside what."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Literal:
    """A string or a number.  *length* is that of its text. [byte]"""

    length: int


@dataclass(frozen=True)
class Operation:
    """An operator and what it joins."""

    operator: str
    operands: "tuple[Expression, ...]"


@dataclass(frozen=True)
class Call:
    """A function and its arguments."""

    function: str
    arguments: "tuple[Expression, ...]"


@dataclass(frozen=True)
class Step:
    """One step of a path: an axis, and the predicates behind it.

    Attributes:
        test: What nodes have to be: a name, ``*``, or a type of node with its bracket.
        shorthand: It is the ``descendant-or-self::node()`` that ``//`` stands for.
    """

    axis: str
    test: str = "node("
    predicates: "tuple[Expression, ...]" = ()
    shorthand: bool = False

    @property
    def named(self) -> bool:
        """Whether it asks for one name: an element has at most one attribute of it."""
        return not self.test.endswith(("*", "("))

    @property
    def typed(self) -> bool:
        """Whether it asks for a type of node, which may be other than element and attribute."""
        return self.test.endswith("(")


@dataclass(frozen=True)
class Path:
    """Steps from the document's root, from the context node, or from what *start* selects.

    Attributes:
        absolute: From the root.
        start: What it begins with, where that is an expression of its own, mostly one in
            parentheses.
        predicates: Those directly behind *start*.
    """

    steps: tuple[Step, ...]
    absolute: bool = False
    start: "Expression | None" = None
    predicates: "tuple[Expression, ...]" = ()


Expression = Literal | Operation | Call | Path


def is_search(expression: Expression) -> bool:
    """Say whether *expression* is a path down, which is true where there is anything."""
    if not isinstance(expression, Path) or expression.start is not None or not expression.steps:
        return False
    return expression.steps[-1].axis in ("child", "attribute", "descendant")
