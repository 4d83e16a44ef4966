"""A schema made of another: some of its fields dropped, others added at its end.  Pure."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from nightwire.schemas._parse import parse_message
from nightwire.schemas._types import NAMED, Types, kind

Steps = tuple[str, ...]


def derived_schema(
    schema: Mapping[str, Any], drop: Collection[str], add: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """Return *schema* without the fields *drop*, and with the fields *add* in their place or at its end.

    A type that loses fields in one place is called otherwise there, ``<name>_<path>``, since it may stand in
    other places as well.  Paths that lead nowhere are passed over.

    Args:
        schema: Of a record, as parsed JSON.
        drop: Dotted paths, through arrays of records and nulls as well.
        add: Fields of the record itself, as Avro's JSON has them; they displace those of the same names.

    Raises:
        SchemaError: It is not an Avro schema of a record.
    """
    cutter = _Cutter(schema, drop)
    made = cutter.record(cutter.types.root, ())
    names = {one["name"] for one in add}
    fields = [one for one in made["fields"] if one["name"] not in names]
    return {**made, "fields": [*fields, *map(dict, add)]}


def kept_fields(schema: Mapping[str, Any], drop: Collection[str]) -> list[str]:
    """Return the dotted paths of what of *schema* is left without the fields *drop*.

    Raises:
        SchemaError: It is not an Avro schema of a record.
    """
    cutter = _Cutter(schema, drop)
    return [".".join(steps) for steps in cutter.kept(cutter.types.root, ())]


class _Cutter:
    """Walks through a schema, and leaves fields out."""

    def __init__(self, schema: Mapping[str, Any], drop: Collection[str]) -> None:
        self.types = Types(parse_message(schema))
        self._drop: set[Steps] = {tuple(path.split(".")) for path in drop}
        self._written: set[str] = set()

    def record(self, whole: Mapping[str, Any], steps: Steps) -> dict[str, Any]:
        """Return what is left of a record at *steps*."""
        name = "_".join((whole["name"], *steps)) if steps and self._is_cut(steps) else whole["name"]
        self._written.add(name)
        left = (one for one in whole["fields"] if (*steps, one["name"]) not in self._drop)
        fields = [{**one, "type": self._type(one["type"], (*steps, one["name"]))} for one in left]
        plain = {key: value for key, value in whole.items() if not key.startswith("__")}
        return {**plain, "name": name, "fields": fields}

    def kept(self, schema: Any, steps: Steps) -> Iterator[Steps]:
        """Yield the steps to what is left of a type at *steps*."""
        for branch in self.types.branches(schema):
            if kind(branch) in ("array", "map"):
                yield from self.kept(branch["items" if kind(branch) == "array" else "values"], steps)
            for one in branch["fields"] if kind(branch) == "record" else ():
                path = (*steps, one["name"])
                if path not in self._drop:
                    yield from self.kept(one["type"], path) if self._is_cut(path) else (path,)

    def _type(self, schema: Any, steps: Steps) -> Any:
        if isinstance(schema, list):
            return [self._type(branch, steps) for branch in schema]
        whole = self.types.definition(schema)
        if isinstance(whole, dict) and whole.get("type") in NAMED:
            return self._named(whole, steps)
        for part in ("items", "values"):
            if isinstance(whole, dict) and part in whole:
                return {**whole, part: self._type(whole[part], steps)}
        return schema

    def _named(self, whole: Mapping[str, Any], steps: Steps) -> Any:
        if kind(whole) == "record" and (self._is_cut(steps) or whole["name"] not in self._written):
            return self.record(whole, steps)
        if whole["name"] in self._written:
            return whole["name"]
        self._written.add(whole["name"])
        return dict(whole)

    def _is_cut(self, steps: Steps) -> bool:
        """Return whether something below *steps* is dropped."""
        return any(path[: len(steps)] == steps != path for path in self._drop)
