"""Whether a value fits an Avro schema, and if not, where and why.

fastavro writes much that does not fit: 1.5 as the long 1, None as the boolean false, 2**40 as an
int that Java cannot read.  Nothing of the kind may happen to an alert in silence.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from numbers import Integral, Real
from typing import Any

from nightwire.schemas.avro.plans.defaults import logical_writer
from nightwire.schemas.avro.plans.program import Converter
from nightwire.schemas.avro.plans.schema import CONVERSION_ERRORS, error_text

Check = Callable[[Any], str | None]
"""Returns None for a value that fits, else its dotted path and what is wrong with it."""

EXACT_TYPES: Mapping[str, frozenset[type]] = {
    "null": frozenset({type(None)}),
    "boolean": frozenset({bool}),
    "float": frozenset({float}),  # a float of 64 bits is rounded, as IEEE 754 says
    "double": frozenset({float}),
    "string": frozenset({str}),
    "bytes": frozenset({bytes}),
}
"""Python types that fit without a inexact look."""

MAX_DEPTH = 200
"""How deep records, arrays and maps may lie in one another."""

REMEMBERED = 4096
"""Combinations of types that a record's check remembers; a history has a handful."""


def compile_validator(parsed: Any, names: dict[str, Check] | None = None) -> Check:
    """Return the check of a schema that fastavro has parsed."""
    names = {} if names is None else names
    if isinstance(parsed, list):
        return _union([compile_validator(branch, names) for branch in parsed], parsed)
    kind = parsed["type"] if isinstance(parsed, dict) else parsed
    if isinstance(parsed, dict) and (convert := logical_writer(parsed)):
        return _logical(parsed, convert, compile_validator(_underlying(parsed), names))
    if kind in ("record", "error"):
        return _record(parsed, names)
    if kind in ("enum", "fixed"):
        check = _enum(parsed["symbols"]) if kind == "enum" else _fixed(parsed["size"])
        return names.setdefault(parsed["name"], check)
    if kind in ("array", "map"):
        inner = compile_validator(parsed["items" if kind == "array" else "values"], names)
        return _array(inner) if kind == "array" else _map(inner)
    return PRIMITIVES[kind] if kind in PRIMITIVES else names[kind]


@dataclass(frozen=True)
class _Record:
    """The check of a record.

    Most have their fields in the schema's order, and the same types of values as many before them:
    which values then need a inexact look is remembered.
    """

    names: tuple[str, ...]
    known: frozenset[str]
    exact_types: Sequence[frozenset[type]]
    required: Sequence[bool]
    checks: Sequence[Check]
    inexact: dict[tuple[type, ...], tuple[int, ...]] = field(default_factory=dict)

    def __call__(self, value: Any) -> str | None:
        if not isinstance(value, Mapping):
            return _mismatch(value, "a record")
        if tuple(value) != self.names:
            return self._unordered(value)
        values = tuple(value.values())
        types = tuple(map(type, values))
        if (inexact := self.inexact.get(types)) is None:
            inexact = self._remember(types)
        for at in inexact:
            if why := self.checks[at](values[at]):
                return f".{self.names[at]}{why}"
        return None

    def _remember(self, types: tuple[type, ...]) -> tuple[int, ...]:
        if len(self.inexact) >= REMEMBERED:
            self.inexact.clear()
        known = enumerate(zip(types, self.exact_types, strict=True))
        return self.inexact.setdefault(types, tuple(at for at, (kind, fits) in known if kind not in fits))

    def _unordered(self, value: Mapping[str, Any]) -> str | None:
        for name, required, check in zip(self.names, self.required, self.checks, strict=True):
            if name in value:
                if why := check(value[name]):
                    return f".{name}{why}"
            elif required:
                return f".{name}: it is missing, and has no default"
        strange = sorted(map(str, value.keys() - self.known))
        return f": the schema has no field {', '.join(strange)}" if strange else None


def _record(parsed: Mapping[str, Any], names: dict[str, Check]) -> Check:
    fields = parsed["fields"]
    checks: list[Check] = []
    field_names = tuple(field["name"] for field in fields)
    record = _Record(
        field_names,
        frozenset(field_names),
        [_exact_types(field["type"]) for field in fields],
        ["default" not in field for field in fields],
        checks,
    )
    names[parsed["name"]] = record  # before its fields, which may name it
    checks += [compile_validator(field["type"], names) for field in fields]
    return record


def _exact_types(kind: Any) -> frozenset[type]:
    branches = kind if isinstance(kind, list) else [kind]
    simple = [branch for branch in branches if isinstance(branch, str)]
    return frozenset().union(*(EXACT_TYPES.get(branch, frozenset()) for branch in simple))


def _union(checks: Sequence[Check], branches: Sequence[Any]) -> Check:
    names = [_name(branch) for branch in branches]
    nullable = len(checks) == 2 and "null" in branches
    inner = _nullable(checks[1 - branches.index("null")]) if nullable else _one_of(checks, names)

    def check(value: Any) -> str | None:
        branch_name, value = _named_branch(value)
        if branch_name is None:
            return inner(value)
        return (
            checks[names.index(branch_name)](value)
            if branch_name in names
            else _mismatch(branch_name, " or ".join(names))
        )

    return check


def _named_branch(value: Any) -> tuple[Any, Any]:
    """Return the branch that a value names (a tuple, or ``-type`` in a record), and the value."""
    if isinstance(value, tuple):
        return value if len(value) == 2 else ("", value)
    if isinstance(value, Mapping) and "-type" in value:
        return value["-type"], {key: one for key, one in value.items() if key != "-type"}
    return None, value


def _one_of(checks: Sequence[Check], names: Sequence[str]) -> Check:
    def check(value: Any) -> str | None:
        if any(one(value) is None for one in checks):
            return None
        return _mismatch(value, " or ".join(names))

    return check


def _nullable(inner: Check) -> Check:
    return lambda value: None if value is None else inner(value)


def _array(inner: Check) -> Check:
    def check(value: Any) -> str | None:
        if not isinstance(value, Sequence) or isinstance(value, str | bytes):
            return _mismatch(value, "an array")
        for at, item in enumerate(value):
            if why := inner(item):
                return f"[{at}]{why}"
        return None

    return check


def _map(inner: Check) -> Check:
    def check(value: Any) -> str | None:
        if not isinstance(value, Mapping):
            return _mismatch(value, "a map")
        for key, item in value.items():
            if not isinstance(key, str):
                return _mismatch(key, "a string, as keys of maps are")
            if why := inner(item):
                return f"[{key}]{why}"
        return None

    return check


def _enum(symbols: Sequence[str]) -> Check:
    return lambda value: None if value in symbols else _mismatch(value, f"one of {', '.join(symbols)}")


def _fixed(size: int) -> Check:
    return lambda value: (
        None if isinstance(value, bytes) and len(value) == size else _mismatch(value, f"{size} bytes")
    )


def _logical(parsed: Mapping[str, Any], convert: Converter, underlying: Check) -> Check:
    kind = str(parsed["logicalType"])

    def check(value: Any) -> str | None:
        if value is None:
            return _mismatch(value, kind)
        if kind.startswith("timestamp") and isinstance(value, datetime) and value.tzinfo is None:
            return f": {value} has no time zone"
        try:
            return underlying(convert(value))
        except CONVERSION_ERRORS as error:
            return f": {error_text(error)}"

    return check


def _underlying(parsed: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in parsed.items() if key != "logicalType"}


def _integer(bits: int) -> Check:
    limit = 1 << (bits - 1)

    def check(value: Any) -> str | None:
        if type(value) is int and -limit <= value < limit:
            return None
        fits = type(value) is not bool and isinstance(value, Integral) and -limit <= int(value) < limit
        return None if fits else _mismatch(value, f"an integer of {bits} bits")

    return check


def _real(value: Any) -> str | None:
    fits = type(value) is not bool and isinstance(value, Real)
    return None if fits else _mismatch(value, "a number")


def _null(value: Any) -> str | None:
    return None if value is None else _mismatch(value, "null")


def _boolean(value: Any) -> str | None:
    # or NumPy's
    return None if type(value).__name__ in ("bool", "bool_") else _mismatch(value, "a boolean")


def _string(value: Any) -> str | None:
    return None if isinstance(value, str) else _mismatch(value, "a string")


def _bytes(value: Any) -> str | None:
    return None if isinstance(value, bytes | bytearray | memoryview) else _mismatch(value, "bytes")


PRIMITIVES: Mapping[str, Check] = {
    "null": _null,
    "boolean": _boolean,
    "int": _integer(32),
    "long": _integer(64),
    "float": _real,
    "double": _real,
    "string": _string,
    "bytes": _bytes,
}


def _mismatch(value: Any, wanted: str) -> str:
    return f": {value!r:.60} is a {type(value).__name__}, not {wanted}"


def _name(branch: Any) -> str:
    return str(branch.get("name", branch["type"])) if isinstance(branch, dict) else str(branch)


def depth(value: Any) -> int:
    """Return how deep lists and mappings nest in *value*, or a number above `MAX_DEPTH`."""
    deepest, rest = 0, [(value, 1)]
    while rest and deepest <= MAX_DEPTH:
        one, level = rest.pop()
        inner = one.values() if isinstance(one, Mapping) else one if isinstance(one, list | tuple) else None
        if inner is not None:
            deepest = max(deepest, level)
            rest += [(part, level + 1) for part in inner]
    return deepest
