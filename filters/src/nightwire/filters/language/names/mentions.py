"""What a source mentions: names of fields, and packages.  Pure.

A name can only be asked for where the source holds it, as an attribute or as text, unless the
source makes names as it runs, or takes a record as a whole; then it may read any field.
"""

import ast
from collections.abc import Iterator, Mapping
from contextlib import suppress

from nightwire.schemas.survey_model import MatchName

WHOLE_RECORD_NAMES = frozenset(
    {
        *("items", "keys", "values", "dict", "vars", "dir", "asdict", "pop", "popitem", "copy", "deepcopy"),
        *("DataFrame", "Series", "Table", "QTable", "from_records", "from_dict", "json_normalize"),
        *(
            "format",
            "join",
            "replace",
            "lower",
            "upper",
            "title",
            "capitalize",
            "removeprefix",
            "removesuffix",
        ),
    }
)
"""Who mentions one of these may read anything: it takes records whole, or makes text."""

MAX_NAMES = 5_000
"""A source that mentions more, texts included, is taken to read any field."""


def imported_packages(tree: ast.Module) -> frozenset[str]:
    """Return the packages that a source imports, at any place."""
    names = [item.name for node in ast.walk(tree) if isinstance(node, ast.Import) for item in node.names]
    names += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return frozenset(name.split(".")[0] for name in names)


def sets_attributes(source: str) -> bool:
    """Return whether *source* sets or deletes an attribute of anything.

    What else could do so (``setattr``, ``__dict__``) no filter may name.
    """
    return any(
        isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del)
        for node in ast.walk(ast.parse(source))
    )


def matches_called(tree: ast.Module) -> list[str]:
    """Return the matches and maps (`MatchName`) that a source asks for by constants."""
    top = [node for node in tree.body if isinstance(node, ast.Assign)]
    constants = {
        target.id: node.value for node in top for target in node.targets if isinstance(target, ast.Name)
    }
    found = (_match_called(node, constants) for node in ast.walk(tree) if isinstance(node, ast.Call))
    return [*dict.fromkeys(str(one) for one in found if one is not None)]


def _match_called(node: ast.Call, constants: Mapping[str, ast.expr]) -> MatchName | None:
    given = [*node.args, *(one.value for one in node.keywords)]
    values = [constants.get(one.id, one) if isinstance(one, ast.Name) else one for one in given]
    with suppress(ValueError):
        match node.func, [one.value for one in values if isinstance(one, ast.Constant)]:
            case ast.Attribute(attr="match"), [str(name), int() | float() as radius]:
                return MatchName.of(name, radius)
            case ast.Attribute(attr="in_moc"), [str(name)]:
                return MatchName.of_map(name)
    return None


def mentioned_names(tree: ast.Module, *functions: str) -> frozenset[str] | None:
    """Return the names that a source mentions; None where one of *functions* may read any field."""
    if any(map(_makes_names, ast.walk(tree))):
        return None
    names = all_names(tree)
    whole = any(_takes_whole(tree, _parameter(tree, one)) for one in functions)
    return None if whole or names & WHOLE_RECORD_NAMES or len(names) > MAX_NAMES else names


def all_names(tree: ast.Module) -> frozenset[str]:
    """Return all names and texts of a source, whatever it makes of them."""
    return frozenset(name for node in ast.walk(tree) for name in _names(node))


def _names(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            yield name
        case ast.Constant(value=str(text)):
            yield text
            yield from text.replace(".", " ").replace(",", " ").split()


def _makes_names(node: ast.AST) -> bool:
    match node:
        case ast.JoinedStr():
            return True
        case ast.BinOp(op=ast.Add() | ast.Mod(), left=left, right=right):
            return any(isinstance(one, ast.Constant) and isinstance(one.value, str) for one in (left, right))
        case ast.keyword(arg=None):
            return True
    return False


def _parameter(tree: ast.Module, entry: str) -> str | None:
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == entry)
    return next((one.args.args[0].arg for one in functions if one.args.args), None)


def _takes_whole(tree: ast.Module, alert: str | None) -> bool:
    """Return whether a loop runs through the alert's own fields."""
    return any(
        isinstance(node, ast.For | ast.comprehension)
        and isinstance(node.iter, ast.Name)
        and node.iter.id == alert
        for node in ast.walk(tree)
    )
