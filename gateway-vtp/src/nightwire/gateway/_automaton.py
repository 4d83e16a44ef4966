"""Content models as automata: from state to state by the children of an element.

A model is a tree of tuples, and what is left of it after a child is its derivative (Brzozowski 1964), so
that the states are the models that can be left.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

Model: TypeAlias = tuple[Any, ...]

NOTHING: Model = ("nothing",)
"""No children at all."""
_NEVER: Model = ("never",)


def child(name: str) -> Model:
    """Return the model of one child."""
    return ("child", name)


def sequence(models: Iterable[Model]) -> Model:
    """Return the model of *models* one after the other."""
    left = NOTHING
    for model in models:
        left = _then(left, model)
    return left


def choice(models: Iterable[Model]) -> Model:
    """Return the model of one of *models*."""
    return ("choice", frozenset(models))


def in_any_order(needed: Iterable[str], optional: Iterable[str]) -> Model:
    """Return the model of children that come once each, in any order."""
    return ("all", frozenset(needed), frozenset(optional))


def times(model: Model, least: int, most: int | None) -> Model:
    """Return *model* so many times, without bound where *most* is None.

    Raises:
        ValueError: The bounds are others than 0, 1 and none.
    """
    if least not in (0, 1) or most not in (1, None):
        raise ValueError(f"{least} to {most} times is not compiled")
    if most == 1:
        return model if least else choice([model, NOTHING])
    repeated = ("repeat", model)
    return _then(model, repeated) if least else repeated


def states(model: Model, names: list[str]) -> tuple[list[list[int | None]], list[bool]]:
    """Return for each state the next one by each of *names*, and whether the element may end there."""
    numbers, waiting = {model: 0}, [model]
    table: list[list[int | None]] = []
    while len(table) < len(waiting):
        row: list[int | None] = []
        for name in names:
            left = _after(waiting[len(table)], name)
            if left not in numbers and left != _NEVER:
                numbers[left] = len(waiting)
                waiting.append(left)
            row.append(numbers.get(left))
        table.append(row)
    return table, [_may_end(one) for one in waiting]


def _then(first: Model, second: Model) -> Model:
    if _NEVER in (first, second):
        return _NEVER
    if first == NOTHING:
        return second
    return first if second == NOTHING else ("then", first, second)


def _either(models: Iterable[Model]) -> Model:
    possible = frozenset(model for model in models if model != _NEVER)
    if not possible:
        return _NEVER
    return next(iter(possible)) if len(possible) == 1 else ("choice", possible)


def _may_end(model: Model) -> bool:
    judge: dict[str, Callable[..., bool]] = {
        "nothing": lambda: True,
        "never": lambda: False,
        "child": lambda name: False,
        "then": lambda first, second: _may_end(first) and _may_end(second),
        "choice": lambda models: any(map(_may_end, models)),
        "repeat": lambda inner: True,
        "all": lambda needed, optional: not needed,
    }
    return judge[model[0]](*model[1:])


def _after(model: Model, name: str) -> Model:
    """Return what is left of *model* after a child of this *name*."""
    match model:
        case ("child", wanted):
            return NOTHING if wanted == name else _NEVER
        case ("then", first, second):
            left = _then(_after(first, name), second)
            return _either([left, _after(second, name)]) if _may_end(first) else left
        case ("choice", models):
            return _either(_after(one, name) for one in models)
        case ("repeat", inner):
            return _then(_after(inner, name), model)
        case ("all", needed, optional) if name in needed | optional:
            return ("all", needed - {name}, optional - {name})
    return _NEVER
