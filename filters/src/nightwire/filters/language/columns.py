"""Filters over columns: functions of many alerts at once.  Pure.

``def keep(alerts)`` is given a table.  A function whose columns the constant ``COLUMNS`` beside it
names is given these, in its arguments' order, as pandas Series.
"""

import ast
from collections.abc import Iterator

TABLE = "alerts"
"""Name of the one argument of a filter that is given a table."""
ALERT = "alert"
"""… and of one that is given an alert, whatever is named beside it."""
NAMED = "COLUMNS"
"""Name of the constant that lists the columns that a filter's arguments are."""

Arguments = tuple[str, ...]
"""Names of the columns that are a filter's arguments; none: its one argument is a table."""


def column_arguments(tree: ast.Module, entry: str) -> Arguments | None:
    """Return the columns that function *entry* is given; None where it is given one alert."""
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == entry]
    given = [one.arg for node in functions[-1:] for one in node.args.args]
    named = [found for node in tree.body if (found := _names(node)) is not None]
    if given == [TABLE]:
        return ()
    return named[-1] if named and given != [ALERT] and len(given) == len(named[-1]) else None


def _names(node: ast.stmt) -> Arguments | None:
    """Return the names that `COLUMNS` lists; None where *node* is something else."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if name == NAMED:
            texts = [*_texts(value)]
            return None if None in texts else tuple(filter(None, texts))
    return None


def _texts(value: ast.expr) -> Iterator[str | None]:
    """Yield the texts in a list, and in those that are spread in it; None for anything else."""
    match value:
        case ast.List(elts=items) | ast.Tuple(elts=items):
            for one in items:
                yield from _texts(one)
        case ast.Starred(value=ast.List() | ast.Tuple() as spread):
            yield from _texts(spread)
        case ast.Constant(value=str(text)):
            yield text
        case _:
            yield None
