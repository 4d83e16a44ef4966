"""Constants that only running the notebook makes: their values, as Python literals.

The statements that make a value are run in a process of their own, with the submitter's rights and
in the notebook's folder; the rest of the notebook is not.  The child reads a request from standard
input and writes the answer to standard output, both JSON; what the notebook prints is dropped.

Text, numbers, and tuples, lists, sets, dictionaries and NumPy arrays of these travel: nothing that
would have to be unpickled.
"""

import ast
import json
import math
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from nightwire.filters.authoring.definitions import bound_names
from nightwire.filters.authoring.extract import Values, globals_used
from nightwire.filters.language import FilterError, fault_text

MAX_RUN_S = 120.0
"""Longest run. [s]"""
MAX_MEMORY = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
"""Most memory of a run: half of the machine's. [byte]"""

CHILD = f"from {__name__} import answer; answer()"
"""The program of the child process."""

NOTEBOOK = "<notebook>"
"""File name of the code in tracebacks."""

MAX_LENGTH = 2_200_000
"""Longest literal: 100,000 ids. [character]  A filter's source may have 2,500,000."""

MAX_DEPTH = 20
"""Most levels of containers in one another."""

DTYPES: Mapping[str, str] = {"<f8": "float", "<i8": "int", "|b1": "bool"}
"""Kinds of arrays that have a name of Python's."""

ADVICE: Mapping[str, str] = {
    "DataFrame": "take the columns that the filter needs, as lists or arrays: frame['x'].to_list()",
    "Series": "write .to_list(), .to_dict() or .to_numpy() behind it",
    "Index": "write .to_list() behind it",
    "Table": "take the columns that the filter needs, as lists: list(table['x'])",
    "Column": "write .tolist() behind it",
    "MaskedArray": "write .filled(…) behind it",
    "Quantity": "write .to_value('unit') behind it",
    "Angle": "write .to_value('deg') behind it",
    "Time": "write .mjd behind it",
    "SkyCoord": "keep .ra.deg and .dec.deg, and make the SkyCoord of them by a constant",
    "Path": "a filter reads no files: read it in the notebook, and let the filter use what was in it",
    "PosixPath": "a filter reads no files: read it in the notebook, and let the filter use what was in it",
    "Counter": "write dict(…) around it",
    "defaultdict": "write dict(…) around it, and ask it by .get(key, default)",
    "function": "define it by def, at the top level",
    "partial": "write a function by def instead",
    "generator": "write list(…) around it",
    "module": "import it at the top level",
}
"""Advice on values that cannot be literals, by the name of their type or of a base."""


def values_by_running(
    code: str, folder: Path, seconds: float = MAX_RUN_S, memory: int = MAX_MEMORY
) -> Values:
    """Return a function that finds values by running *code* in *folder*, for *seconds* at most and
    with so much *memory* [byte].
    """
    return lambda names: _run_in_child(code, names, folder, seconds, memory)


def values_of_namespace(namespace: Mapping[str, Any]) -> Values:
    """Return a function that finds values in *namespace*, where the code has been run already."""
    return lambda names: _checked({name: _literal_or_reason(name, namespace) for name in names})


def needed_statements(tree: ast.Module, names: Sequence[str]) -> list[ast.stmt]:
    """Return the statements of *tree* that give *names* their values, in order.  Pure."""
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    modules = {(alias.asname or alias.name).split(".")[0] for node in imports for alias in node.names}
    binds = [(node, bound_names(node, functions | modules)) for node in tree.body]
    stars = [
        at
        for at, node in enumerate(tree.body)
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*"
    ]
    wanted, chosen, before = set(names), set(stars), -1
    while len(chosen) > before:
        before = len(chosen)
        for at, (node, gives) in enumerate(binds):
            if at not in chosen and gives & wanted:
                chosen.add(at)
                wanted |= globals_used(ast.unparse(node))
    return [tree.body[at] for at in sorted(chosen)]


def _run_in_child(
    code: str, names: Sequence[str], folder: Path, seconds: float, memory: int
) -> dict[str, str]:
    which = ", ".join(names)
    try:
        done = subprocess.run(
            [sys.executable, "-c", CHILD], cwd=folder, timeout=seconds, check=True, capture_output=True,
            input=json.dumps({"code": code, "names": list(names), "memory": memory}).encode(),
            env={**os.environ, "MPLBACKEND": "Agg"},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise FilterError(
            f"finding {which} by running the notebook took longer than {seconds:g} s: write the value instead"
        ) from None
    except subprocess.CalledProcessError as error:
        message = error.stderr.decode(errors="replace").strip()[-300:]
        raise FilterError(f"finding {which} by running the notebook failed: {message}") from error
    return _checked({name: tuple(found) for name, found in json.loads(done.stdout).items()})


LiteralOrReason = tuple[str, str]
"""The assignment and an empty reason, or an empty assignment and why the value does not travel."""


def _checked(found: Mapping[str, Any]) -> dict[str, str]:
    if reasons := [why for _, why in found.values() if why]:
        raise FilterError(*reasons)
    return {name: code for name, (code, _) in found.items()}


def _literal_or_reason(name: str, namespace: Mapping[str, Any]) -> LiteralOrReason:
    if name not in namespace:
        return "", f"the filter uses {name}, which has no value yet: run the cell that makes it"
    try:
        return assignment(name, namespace[name]), ""
    except NotPlainError as error:
        return "", f"the filter uses {name}, which cannot travel: it {error}"


def _run_here(code: str, names: Sequence[str]) -> dict[str, LiteralOrReason]:
    module = sys.modules["__main__"] = ModuleType("__main__")
    steps = ast.Module(needed_statements(ast.parse(code), names), [])
    try:
        exec(compile(steps, NOTEBOOK, "exec"), module.__dict__)  # noqa: S102 - the user's own code, at home
    except BaseException as error:  # noqa: BLE001 - whatever it is, its writer is told
        why = f"the filter uses {{}}, and running what makes it failed: {fault_text(error, code, NOTEBOOK)}"
        return {name: ("", why.format(name)) for name in names}
    return {name: _literal_or_reason(name, module.__dict__) for name in names}


def answer() -> None:
    """Answer the request on standard input; what the notebook prints goes to standard error."""
    stdout = os.dup(1)
    os.dup2(2, 1)
    request = json.load(sys.stdin)
    resource.setrlimit(resource.RLIMIT_DATA, (request["memory"], request["memory"]))
    with os.fdopen(stdout, "w") as out:
        json.dump(_run_here(request["code"], request["names"]), out)


class NotPlainError(ValueError):
    """A value that cannot be written as a literal; the message says what it is and what to do."""


def literal(value: Any) -> str:
    """Return an expression whose value is *value*; one of NumPy's arrays names ``numpy``.

    Raises:
        NotPlainError: It is no plain value, or its literal is longer than 2,200,000 characters.
    """
    text = _text(value, MAX_DEPTH)
    if len(text) > MAX_LENGTH:
        found = f"has {len(text):,} characters as a literal, limit is {MAX_LENGTH:,}"
        raise NotPlainError(f"{found}: keep only what the filter needs")
    return text


def assignment(name: str, value: Any) -> str:
    """Return the code that gives *name* this *value*.

    Raises:
        NotPlainError: As for `literal`.
    """
    text = literal(value)
    return f"{'import numpy' + chr(10) if 'numpy.array(' in text else ''}{name} = {text}"


def _text(value: Any, depth: int) -> str:
    if depth == 0:
        raise NotPlainError(f"is nested deeper than {MAX_DEPTH} levels, or holds itself")
    if isinstance(value, np.generic) and value.dtype.kind in "biufcSU":
        value = value.item()
    if type(value) in (float, complex):
        return _number(value)
    if value is None or type(value) in (bool, int, str, bytes):
        return repr(value)
    if (write := _CONTAINERS.get(type(value))) is not None:
        return write(value, depth - 1)
    raise NotPlainError(_advice(value))


def _number(value: float | complex) -> str:
    if isinstance(value, complex):
        return f"complex({_number(value.real)}, {_number(value.imag)})"
    return repr(value) if math.isfinite(value) else f"float({str(value)!r})"


def _joined(items: Any, depth: int) -> str:
    return ", ".join(_text(item, depth) for item in items)


def _tuple(value: tuple[Any, ...], depth: int) -> str:
    return f"({_joined(value, depth)}{',' if len(value) == 1 else ''})"


def _set(value: set[Any], depth: int) -> str:
    return f"{{{', '.join(sorted(_text(item, depth) for item in value))}}}" if value else "set()"


def _frozenset(value: frozenset[Any], depth: int) -> str:
    return f"frozenset({_set(set(value), depth)})" if value else "frozenset()"


def _dict(value: dict[Any, Any], depth: int) -> str:
    return f"{{{', '.join(f'{_text(k, depth)}: {_text(v, depth)}' for k, v in value.items())}}}"


def _array(value: np.ndarray[Any, Any], depth: int) -> str:
    if value.dtype.kind not in "biufcSU":
        raise NotPlainError(
            f"is an array of {value.dtype}: only arrays of numbers, truth values or text travel"
        )
    kind = DTYPES.get(value.dtype.str, repr(value.dtype.str))
    if 0 in value.shape:
        return f"numpy.array([], dtype={kind}).reshape({value.shape!r})"
    return f"numpy.array({_text(value.tolist(), depth)}, dtype={kind})"


_CONTAINERS: Mapping[type, Callable[[Any, int], str]] = {
    list: lambda value, depth: f"[{_joined(value, depth)}]",
    range: lambda value, _: repr(value),
    tuple: _tuple,
    set: _set,
    frozenset: _frozenset,
    dict: _dict,
    np.ndarray: _array,
}


def _advice(value: Any) -> str:
    kinds = [kind.__name__ for kind in type(value).__mro__]
    advice = next((ADVICE[kind] for kind in kinds if kind in ADVICE), None)
    what = f"is a {type(value).__module__}.{type(value).__qualname__}".replace("builtins.", "")
    return f"{what}; {advice or 'only numbers, text, and lists, sets, dictionaries or arrays of them travel'}"
