"""Compiling f-strings, of which the text can be compared."""

import ast
from collections.abc import Iterator

from nightwire.filters.language._operations import FORMAT
from nightwire.filters.language._scope import HANDLERS, Scope
from nightwire.filters.language._statics import Formatted, Static


def formatted(scope: Scope, node: ast.JoinedStr) -> Static:
    """Compile an f-string."""
    build = scope.build
    parts = [_formatted(scope, one) for one in node.values]
    text = build.of("joined", *parts, *[build.constant("")] * (2 - len(parts)))
    return Formatted(text, None if build.safe[text] else text)


def _formatted(scope: Scope, node: ast.expr) -> int:
    if not isinstance(node, ast.FormattedValue):
        return scope.scalar(node)
    value, how = scope.scalar(node.value), "".join(_constant_texts(node.format_spec))
    if node.conversion != -1 or not FORMAT.fullmatch(how):
        raise scope.build.refuse(
            f"`{ast.unparse(node)[:60]}`: f-strings compile with {{value}}, {{value:.2f}}, 99 characters wide"
        )
    return scope.build.of("format", value, scope.build.constant(how))


def _constant_texts(spec: ast.expr | None) -> Iterator[str]:
    for one in getattr(spec, "values", ()):
        yield str(one.value) if isinstance(one, ast.Constant) else "{}"


HANDLERS[ast.JoinedStr] = formatted
