"""Compiling which points are meant: by number, by a computed number, by a slice or a mask."""

import ast
from typing import Any

from nightwire.filters.language._masks import is_mask, no_mask
from nightwire.filters.language._nodes import Node
from nightwire.filters.language._scope import Scope
from nightwire.filters.language._statics import Field, PointAt, Points, Static, Values


def key_of(scope: Scope, node: ast.expr) -> Any:
    """Return the constant that *node* is; None where it is none."""
    if isinstance(node, ast.Constant):
        return node.value
    value = scope.value(node) if not isinstance(node, ast.Slice | ast.Tuple) else None
    found = scope.build.nodes[value] if isinstance(value, int) else ("",)
    return found[1] if found[0] == "const" else None


def chosen(scope: Scope, owner: Values | Points, index: ast.expr) -> Static:
    """Compile ``points[-1]``, ``flux[np.argmax(flux)]``, ``points[1:]``, ``flux[flux > 0]``."""
    if isinstance(owner, Values) and owner.lazy:
        raise scope.build.refuse("a generator has no [ ]: make a list of it")
    if isinstance(index, ast.Slice):
        return _sliced(scope, owner, index)
    by = scope.value(index)
    by = scope.read(by) if isinstance(by, Field) else by
    if isinstance(by, int):
        node = scope.build.nodes[by]
        return single(scope, owner, node[1]) if _is_whole(node) else _by_value(scope, owner, by)
    if isinstance(by, Values) and isinstance(owner, Values) and owner.numpy and by.numpy:
        return _masked(scope, owner, by)
    raise scope.build.refuse(
        f"[{ast.unparse(index)[:60]}]: points are chosen by a whole number, a slice or a mask"
    )


def _is_whole(node: Node) -> bool:
    return node[0] == "const" and type(node[1]) is int


def single(scope: Scope, owner: Values | Points, key: int) -> Static:
    """Return the point number *key*."""
    build = scope.build
    if isinstance(owner, Values):
        return build.then(owner.guard, build.points("at", owner.extent, owner.item, key))
    there = build.points("at", owner.extent, build.constant(True), key)
    return PointAt(owner.extent, key, build.both(owner.guard, there))


def _by_value(scope: Scope, owner: Values | Points, index: int) -> Static:
    """Return the point whose number is computed: ``time[np.argmax(flux)]``."""
    build = scope.build
    if build.extents[index] >= 0 or build.nodes[index][0] == "const":
        raise build.refuse("points are chosen by a whole number, a slice or a mask")
    extent = build.points("nth", owner.extent, index)
    guard = build.both(build.both(owner.guard, index), build.points("chosen", extent))
    if isinstance(owner, Points):
        return PointAt(extent, 0, guard)
    return build.then(guard, build.points("at", extent, build.points("sift", extent, owner.item), 0))


def _sliced(scope: Scope, owner: Values | Points, index: ast.Slice) -> Static:
    ends = [None if end is None else key_of(scope, end) for end in (index.lower, index.upper)]
    step = None if index.step is None else key_of(scope, index.step)
    wrong = [
        end
        for end, given in zip(ends, (index.lower, index.upper), strict=True)
        if given and type(end) is not int
    ]
    if wrong or (index.step is not None and step != 1):
        raise scope.build.refuse(
            f"[{ast.unparse(index)}]: the ends of a slice are constant whole numbers, in steps of 1"
        )
    return cut(scope, owner, scope.build.points("slice", owner.extent, *ends))


def _masked(scope: Scope, owner: Values, mask: Values) -> Static:
    build = scope.build
    if owner.extent != mask.extent:
        raise build.refuse("a mask must be made of the same points as the array that it chooses from")
    if not is_mask(build, mask.item):
        raise build.refuse("a mask is true or false for each point: flux[flux > 0]")
    guard = build.both(build.both(owner.guard, mask.guard), no_mask(build, mask.item))
    owner = Values(owner.extent, owner.item, guard, numpy=True)
    return cut(scope, owner, build.points("where", owner.extent, mask.item))


def cut(scope: Scope, owner: Values | Points, extent: int) -> Points | Values:
    """Return the points of *owner* that *extent* has kept."""
    if isinstance(owner, Points):
        return Points(extent, owner.guard)
    item = scope.build.points("sift", extent, owner.item)
    return Values(extent, item, owner.guard, owner.numpy, owner.lazy)
