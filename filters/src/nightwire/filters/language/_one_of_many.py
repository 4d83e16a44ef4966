"""Compiling what makes one value of many: sums, extremes, means over the points of a history."""

import ast
from collections.abc import Sequence

from nightwire.filters.language._lists import array
from nightwire.filters.language._operations import REDUCTIONS
from nightwire.filters.language._scope import Scope
from nightwire.filters.language._sorting import keyed
from nightwire.filters.language._statics import Static, Values


def extreme(scope: Scope, name: str, node: ast.Call) -> Static:
    """Compile ``min`` and ``max``, of values or of a list."""
    words = {word.arg: word.value for word in node.keywords}
    if len(node.args) > 1 and not words:
        return scope.build.of(
            "smallest" if name == "min" else "largest", *[scope.scalar(one) for one in node.args]
        )
    if set(words) - {"default", "key"} or len(node.args) != 1 or len(words) > 1:
        raise scope.build.refuse(f"`{ast.unparse(node)[:60]}`: these arguments of {name} cannot be compiled")
    value = scope.value(node.args[0])
    if "key" in words:
        return keyed(scope, name, value, words["key"])
    found = reduction(scope, name, value, [], node)
    if not words or not isinstance(value, Values):
        return found
    build, default = scope.build, scope.scalar(words["default"])
    filled = build.of(">", build.points("count", value.extent), build.constant(0))
    return build.then(build.both(value.guard, default), build.of("if", filled, found, default))


def reduction(scope: Scope, name: str, value: Static, more: list[ast.expr], node: ast.Call) -> int:
    """Return the node of one value made of a list's."""
    build = scope.build
    if not isinstance(value, Values):
        raise build.refuse(f"{name}(…) takes a list or generator over the history")
    if value.numpy and not name.startswith("np."):
        name = {"any": "np.any", "all": "np.all"}.get(name, name)
    item = value.item
    if name.startswith("np."):
        value = array(scope, value)
        item = value.item
    extra = _extra(scope, name, more, node)
    if name == "sum" and more:
        return build.then(value.guard, build.points("fold", scope.scalar(more[0]), value.extent, item))
    return build.then(value.guard, build.points(name, value.extent, item, *extra))


def _extra(scope: Scope, name: str, more: list[ast.expr], node: ast.Call) -> Sequence[int | float]:
    """Return the argument that a reduction takes beside its list: ``ddof``, or which percentile."""
    last = REDUCTIONS[name].takes[-1]
    words = [word.value for word in node.keywords if last == "k" and word.arg == "ddof"]
    given = [scope.value(one) for one in (*more, *words)] if last in "kr" else []
    others = [word.arg for word in node.keywords if word.arg not in ("ddof", "default")]
    nodes = [scope.build.nodes[one] if isinstance(one, int) else ("",) for one in given]
    numbers = [one[1] for one in nodes if one[0] == "const" and type(one[1]) in TAKEN.get(last, ())]
    if others or len(numbers) != len(given) or (more and not given and name != "sum") or len(given) > 1:
        raise scope.build.refuse(f"`{ast.unparse(node)[:60]}`: these arguments of {name} cannot be compiled")
    if last == "r" and not numbers:
        raise scope.build.refuse(f"{name} takes one constant number: which it is")
    return numbers or ([0] if last == "k" else [])


TAKEN = {"k": (int,), "r": (int, float)}
"""Types of a reduction's further argument, by its letter."""
