"""Transforms: fields of alerts are dropped, means and computed values are added.  Pure.

What code computes is declared in its source, by a constant that is read and never run:

    ADDS = {"score": float, "label": (str, "What it looks like.")}

    def transform(alert):
        return {"score": 0.9, "label": "supernova"}
"""

import ast
import json
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from nightwire.filters.language import FilterError
from nightwire.schemas import survey as survey_called

DECLARED = "ADDS"
"""Name of the constant that declares what is added."""

TYPES: Mapping[str, Any] = {
    "float": "double",
    "int": "long",
    "str": "string",
    "bool": "boolean",
    "list[float]": {"type": "array", "items": "double"},
    "list[int]": {"type": "array", "items": "long"},
}
"""What may be added, in Python and in Avro.  Each may be None as well."""

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
LONG = 1 << 63
"""Integers are smaller than this, and at least its negative."""


@dataclass(frozen=True, order=True)
class AddedField:
    """A field that code computes: its name, its type in Python, and its description."""

    name: str
    type: str
    doc: str = ""


@dataclass(frozen=True)
class Transform:
    """The fields that are dropped of an alert, and those that are added.

    Attributes:
        drop: Dotted paths of the fields that are left out.
        means: Dotted paths of numbers in an array of records: their mean is added, and how many
            there are.
        adds: What code computes.
    """

    drop: tuple[str, ...] = ()
    means: tuple[str, ...] = ()
    adds: tuple[AddedField, ...] = ()

    def __bool__(self) -> bool:
        """Whether anything is changed."""
        return bool(self.drop or self.means or self.adds)

    def fields(self) -> list[dict[str, Any]]:
        """Return the added fields as Avro has them; each may be null."""
        made: dict[str, dict[str, Any]] = {}
        for path in self.means:
            array, value = path.rpartition(".")[::2]
            made[count_name(path)] = _field(count_name(path), "long", f"How many records {array} has.")
            text = f"Mean of {value} in {array}, of those that have a finite one."
            made[mean_name(path)] = _field(mean_name(path), "double", text)
        for one in self.adds:
            made[one.name] = _field(one.name, TYPES[one.type], one.doc)
        return list(made.values())

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return asdict(self)


def load_transform(values: Mapping[str, Any]) -> Transform:
    """Return the transform of a result of `Transform.as_json`."""
    return Transform(
        tuple(values["drop"]), tuple(values["means"]), tuple(AddedField(**one) for one in values["adds"])
    )


def mean_name(path: str) -> str:
    """Return the name of the field that holds the mean of *path*: prvDiaSourcesMeanPsfFlux."""
    array, value = path.rpartition(".")[::2]
    return f"{array.replace('.', '_')}Mean{value[:1].upper()}{value[1:]}"


def count_name(path: str) -> str:
    """Return the name of the field that holds how many records the array of *path* has."""
    return f"{path.rpartition('.')[0].replace('.', '_')}Count"


@lru_cache(maxsize=4096)
def declared_fields(source: str) -> tuple[AddedField, ...]:
    """Return the fields that *source* declares to add.

    Raises:
        FilterError: It declares nothing, or in another way.
    """
    for node in ast.parse(source).body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Dict(keys=keys, values=values)):
                if name == DECLARED and keys:
                    return tuple(map(_added, keys, values))
    raise FilterError(
        f'a transform declares what it adds, as {DECLARED} = {{"score": float, "label": (str, "what")}}; '
        f"types are {', '.join(TYPES)}"
    )


def misfit(adds: Sequence[AddedField], values: Any) -> str | None:
    """Return the error in the *values* of a transform; None where they are as declared."""
    if not isinstance(values, dict):
        return f"transform gave {_kind(values)}, not a dictionary"
    types = {one.name: one.type for one in adds}
    if strange := [name for name in values if name not in types]:
        return f"transform gave {strange[0]!r}, which {DECLARED} does not declare"
    for name, value in values.items():
        if value is not None and not _fits(types[name], value):
            return f"transform gave {_kind(value)} for {name}, declared as {types[name]}"
    return None


def parse_added(adds: Sequence[AddedField], text: str) -> dict[str, Any] | str:
    """Return the values in the JSON *text* of a sandbox, or the error in them."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return "transform gave what is no JSON"
    wrong = misfit(adds, values)
    return wrong if wrong is not None else dict(values)


def mean(values: Iterable[Any], absent: Collection[float] = ()) -> float | None:
    """Return the mean of those *values* that are finite numbers, not *absent*; None for none."""
    numbers = (value for value in values if isinstance(value, int | float))
    finite = [float(value) for value in numbers if math.isfinite(value) and value not in absent]
    return math.fsum(finite) / len(finite) if finite else None


def _field(name: str, kind: Any, doc: str) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None, "doc": doc}


def _added(key: ast.expr | None, value: ast.expr) -> AddedField:
    name = key.value if isinstance(key, ast.Constant) else None
    doc = ""
    match value:
        case ast.Tuple(elts=[kind, ast.Constant(value=str(doc))]):
            value = kind
    type_name = ast.unparse(value)
    if not isinstance(name, str) or NAME.fullmatch(name) is None:
        raise FilterError(f"{DECLARED}: {ast.unparse(key) if key else '**'} is no name of a field")
    if type_name not in TYPES:
        raise FilterError(f"{DECLARED}: {name} is declared as {type_name}; types are {', '.join(TYPES)}")
    return AddedField(name, type_name, doc)


def _fits(kind: str, value: Any) -> bool:
    if kind.startswith("list["):
        return isinstance(value, list) and all(_fits(kind[5:-1], one) for one in value)
    if kind == "float":
        return isinstance(value, float) or _fits("int", value)
    if kind == "int":
        return isinstance(value, int) and not isinstance(value, bool) and -LONG <= value < LONG
    if kind == "bool":
        return isinstance(value, bool)
    return isinstance(value, str) and not any("\ud800" <= char <= "\udfff" for char in value)


def _kind(value: Any) -> str:
    if isinstance(value, list):
        return f"a list of {_kind(value[0])}" if value else "an empty list"
    return f"{type(value).__name__} {value!r}"[:80]


def light_form(name: str) -> dict[str, list[str]]:
    """Return ``drop`` and ``means`` of a request for the light form of survey *name*.

    Raises:
        SchemaError: There is no such survey.
    """
    about = survey_called(name).description
    means = [f"{one.path}.{value}" for one in about.history if (value := one.flux or one.magnitude)]
    stamps = [path.partition(".")[0] for path in about.stamps.values()]
    return {"drop": [*stamps, *(one.path for one in about.history)], "means": means}
