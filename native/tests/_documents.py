"""Layouts and plans of schemas, as plainly as can be: no resolution, no selection."""

from collections.abc import Callable
from typing import Any

from fastavro.read import LOGICAL_READERS
from fastavro.schema import parse_schema
from fastavro.write import LOGICAL_WRITERS

NAMED = ("record", "error", "enum", "fixed")


class Documents:
    """The layout and the plan of one schema, with their constants and converters."""

    def __init__(self, schema: Any) -> None:
        self._nodes: list[dict[str, Any]] = []
        self._named: dict[str, int] = {}
        self.constants: list[Any] = []
        self.writers: list[Callable[[Any], Any]] = []
        self.readers: list[Callable[[Any], Any]] = []
        self._root = self._node(parse_schema(schema, named_schemas={}))

    @property
    def layout(self) -> dict[str, Any]:
        """What an `Encoder` takes; also what a `Decoder` takes, but for the defaults."""
        return {"root": self._root, "nodes": self._nodes}

    @property
    def plan(self) -> dict[str, Any]:
        """What a `Decoder` takes."""
        return self.layout

    def _node(self, schema: Any) -> int:
        if isinstance(schema, str) and schema in self._named:
            return self._named[schema]
        at = len(self._nodes)
        node: dict[str, Any] = {}
        self._nodes.append(node)
        if isinstance(schema, list):
            node.update(op="union", branches=[self._node(branch) for branch in schema])
        elif isinstance(schema, str):
            node["op"] = schema
        else:
            self._fill(node, at, schema)
        return at

    def _fill(self, node: dict[str, Any], at: int, schema: dict[str, Any]) -> None:
        kind = node["op"] = "record" if schema["type"] == "error" else schema["type"]
        if kind in NAMED:
            node["name"] = schema["name"]
            self._named[schema["name"]] = at
        for part in ("items", "values"):
            if part in schema:
                node[part] = self._node(schema[part])
        node.update({part: schema[part] for part in ("size", "symbols") if part in schema})
        if kind == "record":
            node["fields"] = [self._field(field) for field in schema["fields"]]
        name = f"{kind}-{schema.get('logicalType')}"
        if name in LOGICAL_WRITERS:
            node.update(logical=len(self.writers), logical_name=name)
            self.writers.append(lambda value: LOGICAL_WRITERS[name](value, schema))
            self.readers.append(lambda value: LOGICAL_READERS[name](value, schema, None))

    def _field(self, field: dict[str, Any]) -> dict[str, Any]:
        made = {"name": field["name"], "type": self._node(field["type"])}
        if "default" in field:
            made["default"] = len(self.constants)
            self.constants.append(field["default"])
        return made
