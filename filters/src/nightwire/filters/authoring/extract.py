"""The part of a notebook or script that is submitted: the filter's function and all that it uses.

Runs on the submitter's side, on the text alone: nothing is executed here.  Functions, classes,
imports and constants travel when the filter uses them, directly or through one another; prints,
plots and the loading of samples stay at home.  The caller finds the values of constants that
are made by running the code.
"""

import ast
import builtins
import symtable
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from nightwire.filters.authoring.definitions import FUTURE, Definition, Kind, definitions
from nightwire.filters.language import MODULES, NAMED, FilterError, column_arguments

Values = Callable[[Sequence[str]], Mapping[str, str]]
"""Finds the values of names by running the code: for each name the code that gives it its value."""


def extract(code: str, entry: str = "keep", values: Values | None = None, also: Sequence[str] = ()) -> str:
    """Return the source of the function *entry* with all that it uses, in the order it was written.

    Args:
        code: A whole script.
        entry: The filter's function.
        values: Finds the values made by running the code; without it, they are refused.
        also: Further names that are submitted, with all that they use.

    Raises:
        FilterError: The code does not parse or lacks the function, or a name cannot be submitted.
    """
    tree, known = _parsed(code)
    if entry not in known or known[entry].kind is not Kind.FUNCTION:
        names = ", ".join(_functions(known)) or "none"
        raise FilterError(f"there is no function {entry}(alert); functions found: {names}")
    if column_arguments(tree, entry):
        also = [*also, NAMED]
    if absent := [name for name in also if name not in known]:
        raise FilterError(f"there is no {absent[0]}, which a transform needs beside {entry}")
    used = _Closure(known, _star_imports(tree)).of(entry, *also)
    made = {name: one for name, one in used.items() if one.kind is Kind.COMPUTED}
    if made:
        used = used | _with_values(made, values)
    return FUTURE + "\n".join(one.code for one in sorted(used.values(), key=lambda one: one.order)) + "\n"


def likely_function(code: str, transform: str = "") -> str:
    """Return the name of the filter's function where its owner does not say: ``keep``, unless
    *code* defines one other function only, *transform* apart.

    Raises:
        FilterError: The code does not parse.
    """
    functions = [one for one in _functions(_parsed(code)[1]) if one != transform]
    return functions[0] if len(functions) == 1 else "keep"


def _parsed(code: str) -> tuple[ast.Module, dict[str, Definition]]:
    """Return a script's tree and its definitions by name; the last one counts.

    Raises:
        FilterError: The code does not parse.
    """
    try:
        tree = ast.parse(code)
        return tree, {found.name: found for found in definitions(tree, code)}
    except SyntaxError as error:
        raise FilterError(f"line {error.lineno}: {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise FilterError(f"the code cannot be read: {str(error) or type(error).__name__}") from error


def _functions(known: Mapping[str, Definition]) -> list[str]:
    return sorted(name for name, found in known.items() if found.kind is Kind.FUNCTION)


@dataclass(frozen=True)
class _Closure:
    known: Mapping[str, Definition]
    stars: Sequence[str]

    def of(self, *entries: str) -> dict[str, Definition]:
        """Return the definitions that *entries* need, themselves among them, by name."""
        todo, done, reasons = [*entries], dict[str, Definition](), list[str]()
        while todo:
            one = self._with_final_kind(self.known[todo.pop()])
            done[one.name] = one
            if one.kind is Kind.COMPUTED:
                continue  # its value is submitted, not the code that makes it
            reasons += _import_objections(one)
            for name in sorted(globals_used(one.code) - done.keys() - set(todo)):
                if name in self.known:
                    todo.append(name)
                elif not hasattr(builtins, name):
                    reasons.append(self._undefined(one, name))
        if reasons:
            raise FilterError(*reasons)
        return done

    def _with_final_kind(self, one: Definition) -> Definition:
        """Return *one*; a constant made of names that change later counts as computed."""
        later = (self.known[name].order > one.order for name in globals_used(one.code) if name in self.known)
        return replace(one, kind=Kind.COMPUTED) if one.kind is Kind.CONSTANT and any(later) else one

    def _undefined(self, one: Definition, name: str) -> str:
        message = f"{one.name} (line {one.line}) uses {name}, which nothing defines"
        if not self.stars:
            return message
        return f"{message}; if it comes from `{self.stars[0]}`, import it by its name"


def _import_objections(one: Definition) -> Iterator[str]:
    """Yield an objection if *one* is imported from a module that only this machine has."""
    root = (one.module or "").split(".")[0]
    if one.module is None or root in MODULES or root in sys.stdlib_module_names:
        return  # the language decides about these imports
    allowed = ", ".join(sorted(name for name in MODULES if name not in sys.stdlib_module_names))
    what = one.name if one.name == root else f"{one.name} of {one.module}"
    yield (
        f"line {one.line}: the filter uses {what}, which the engine does not "
        f"have: copy its code into the notebook, or do it with {allowed}"
    )


def _with_values(made: Mapping[str, Definition], values: Values | None) -> dict[str, Definition]:
    if values is None:
        raise FilterError(*(
            f"line {one.line}: the filter uses {one.name}, which is made by running "
            f"`{one.code.splitlines()[0][:80]}`; "
            "only functions, imports and constants travel"
            for one in made.values()
        ))  # fmt: skip
    found = values(sorted(made))
    return {name: replace(one, code=found[name]) for name, one in made.items()}


def _star_imports(tree: ast.Module) -> list[str]:
    return [
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names)
    ]


def globals_used(code: str) -> set[str]:
    """Return the global names that *code* uses, apart from those in annotations."""
    tables = [symtable.symtable(FUTURE + code, "<filter>", "exec")]
    names: set[str] = set()
    while tables:
        table = tables.pop()
        tables += table.get_children()
        if table.get_type() not in {"module", "class", "function"}:
            continue  # annotations
        top = table.get_type() == "module"
        names |= {
            item.get_name()
            for item in table.get_symbols()
            if item.is_referenced() and (top or item.is_global())
        }
    return names
