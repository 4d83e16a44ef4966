"""The values of names that a notebook makes by running: found by running it, where its writer sits.

What makes them is run in a fresh process, with the submitter's rights and in the notebook's folder, and
so is nothing else of the notebook.  The child is this module run as a program: a request on its standard
input, the answer on its standard output, both JSON; what the notebook prints is dropped.
"""

import ast
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from nightwire.filters._definitions import bound
from nightwire.filters._extract import Values, globals_used
from nightwire.filters._literal import NotPlainError, assignment
from nightwire.filters.language import FilterError

SECONDS = 120.0
"""Longest run. [s]"""

NOTEBOOK = "<notebook>"
"""What the code is called in tracebacks."""


def by_running(code: str, folder: Path, seconds: float = SECONDS) -> Values:
    """Return what finds values by running *code* in *folder*, for at most so many seconds."""
    return lambda names: _run(code, names, folder, seconds)


def of_namespace(namespace: Mapping[str, Any]) -> Values:
    """Return what finds values in *namespace*, where the code has been run already."""
    return lambda names: _sound({name: _written(name, namespace) for name in names})


def needed(tree: ast.Module, names: Sequence[str]) -> list[ast.stmt]:
    """Return the statements of *tree* that give *names* their values, in order.  Pure."""
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    modules = {(alias.asname or alias.name).split(".")[0] for node in imports for alias in node.names}
    binds = [(node, bound(node, functions | modules)) for node in tree.body]
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


def _run(code: str, names: Sequence[str], folder: Path, seconds: float) -> dict[str, str]:
    which = ", ".join(names)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "nightwire.filters._capture"], cwd=folder, timeout=seconds, check=True,
            input=json.dumps({"code": code, "names": list(names)}).encode(), capture_output=True,
            env={**os.environ, "MPLBACKEND": "Agg"},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise FilterError(
            f"finding {which} by running the notebook took longer than {seconds:g} s: write the value instead"
        ) from None
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip()[-300:]
        raise FilterError(f"finding {which} by running the notebook failed: {said}") from error
    return _sound({name: tuple(found) for name, found in json.loads(done.stdout).items()})


Found = tuple[str, str]
"""Code and "", or "" and why there is none."""


def _sound(found: Mapping[str, Any]) -> dict[str, str]:
    if reasons := [why for _, why in found.values() if why]:
        raise FilterError(*reasons)
    return {name: code for name, (code, _) in found.items()}


def _written(name: str, namespace: Mapping[str, Any]) -> Found:
    if name not in namespace:
        return "", f"the filter uses {name}, which has no value yet: run the cell that makes it"
    try:
        return assignment(name, namespace[name]), ""
    except NotPlainError as error:
        return "", f"the filter uses {name}, which cannot travel: it {error}"


def _found(code: str, names: Sequence[str]) -> dict[str, Found]:
    module = sys.modules["__main__"] = ModuleType("__main__")
    steps = ast.Module(needed(ast.parse(code), names), [])
    try:
        exec(compile(steps, NOTEBOOK, "exec"), module.__dict__)  # noqa: S102 - the user's own code, at home
    except BaseException as error:  # noqa: BLE001 - whatever it is, its writer is told
        why = f"the filter uses {{}}, and running what makes it failed: {_where(error, code)}"
        return {name: ("", why.format(name)) for name in names}
    return {name: _written(name, module.__dict__) for name in names}


def _where(error: BaseException, code: str) -> str:
    said = "".join(traceback.format_exception_only(error)).strip().splitlines()[-1][:300]
    lines = [at.lineno for at in traceback.extract_tb(error.__traceback__) if at.filename == NOTEBOOK]
    if not lines or lines[-1] is None:
        return said
    return f"{said} (line {lines[-1]}: {code.splitlines()[lines[-1] - 1].strip()[:120]})"


def main() -> None:
    """Answer the request on standard input; what the notebook prints goes to standard error."""
    answer = os.dup(1)
    os.dup2(2, 1)
    asked = json.load(sys.stdin)
    with os.fdopen(answer, "w") as out:
        json.dump(_found(asked["code"], asked["names"]), out)


if __name__ == "__main__":
    main()
