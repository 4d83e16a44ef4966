"""How the values of a schema are written: its layout, which the engines execute."""

from collections.abc import Mapping
from typing import Any

from nightwire.schemas.avro.plans.defaults import default_to_write, logical_writer, mark_logical
from nightwire.schemas.avro.plans.program import Draft, Program
from nightwire.schemas.avro.plans.schema import NAMED, Types, kind


def layout(parsed: Any) -> Program:
    """Return the layout of a schema that fastavro has parsed.

    Raises:
        SchemaError: A default is no value of its field's type.
    """
    maker = _Layout(Types(parsed))
    return maker.draft.program(maker.node(parsed))


class _Layout:
    def __init__(self, types: Types) -> None:
        self.draft = Draft()
        self._types = types
        self._named: dict[str, int] = {}

    def node(self, schema: Any) -> int:
        """Add the nodes of *schema*, and return the first one's index."""
        schema = self._types.definition(schema)
        op = kind(schema)
        if op in NAMED:
            if schema["name"] not in self._named:
                # before its fields, which may name it
                self._named[schema["name"]] = at = self.draft.add(op)
                self._fill(at, op, schema)
            return self._named[schema["name"]]
        at = self.draft.add(op)
        self._fill(at, op, schema)
        return at

    def _fill(self, at: int, op: str, schema: Any) -> None:
        mark_logical(self.draft, at, schema, logical_writer(schema))
        self.draft.nodes[at].update(self._more(op, schema))

    def _more(self, op: str, schema: Any) -> Mapping[str, Any]:
        match op:
            case "fixed":
                return {"size": schema["size"], "name": schema["name"]}
            case "enum":
                return {"symbols": list(schema["symbols"]), "name": schema["name"]}
            case "array":
                return {"items": self.node(schema["items"])}
            case "map":
                return {"values": self.node(schema["values"])}
            case "union":
                return {"branches": [self.node(branch) for branch in schema]}
            case "record":
                return {"name": schema["name"], "fields": [self._field(one) for one in schema["fields"]]}
        return {}

    def _field(self, field: Mapping[str, Any]) -> dict[str, Any]:
        made = {"name": field["name"], "type": self.node(field["type"])}
        if "default" in field:
            default = default_to_write(self._types, field["type"], field["default"])
            made["default"] = self.draft.constant(default)
        return made
