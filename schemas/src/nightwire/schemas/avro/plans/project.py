"""Projection: from a plan to one that reads chosen fields only and stops after the last."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from nightwire.schemas.avro.plans.program import Draft, Program


class FieldTree(dict[str, "FieldTree"]):
    """Dotted paths as a tree; without branches: all of it."""

    @classmethod
    def of(cls, paths: Sequence[Sequence[str]]) -> Self:
        """Return the tree of *paths*.  A path that is another's prefix includes it."""
        tree = cls()
        for path in sorted(set(map(tuple, paths)), key=len):
            tree.insert(path)
        return tree

    def insert(self, path: Sequence[str]) -> None:
        here: FieldTree = self
        for number, step in enumerate(path):
            if step in here and not here[step]:
                return  # all of it is wanted already
            if step not in here:
                here[step] = type(self)()
            here = here[step]
            if number == len(path) - 1:
                here.clear()


def project(plan: Program, paths: Sequence[Sequence[str]]) -> Program:
    """Return the plan that reads only the fields at *paths*, in the order of the bytes."""
    projector = _Projector(plan)
    root = projector.node(plan.root, FieldTree.of(paths)) if paths else projector.empty_record(plan.root)
    projector.drop_tail(root)
    return replace(projector.draft.program(root), partial=True)


class _Projector:
    def __init__(self, plan: Program) -> None:
        self._plan = plan
        self.draft = Draft()
        self.draft.converters.extend(plan.converters)
        self.draft.constants.extend(plan.constants)
        self._whole: dict[int, int] = {}
        self._skipped: dict[int, int] = {}

    def empty_record(self, at: int) -> int:
        """Add the node of a record of which nothing is wanted."""
        return self.draft.add("record", name=self._plan.nodes[at].get("name", ""), fields=[], absent=[])

    def node(self, at: int, wanted: FieldTree) -> int:
        """Add what of the node *at* is *wanted*, and return its index."""
        if not wanted:
            return self.whole(at)
        node = self._plan.nodes[at]
        new = self.draft.add(node["op"])
        self.draft.nodes[new] = (
            self._record(node, wanted)
            if node["op"] == "record"
            else self._mapped(node, lambda part: self.node(part, wanted))
        )
        return new

    def whole(self, at: int) -> int:
        """Add all of the node *at*."""
        if at not in self._whole:
            node = self._plan.nodes[at]
            self._whole[at] = new = self.draft.add(node["op"])
            self.draft.nodes[new] = self._mapped(node, self.whole)
        return self._whole[at]

    def skipped(self, at: int) -> int:
        """Add a node that passes over the bytes of node *at*."""
        if at not in self._skipped:
            node = self._plan.nodes[at]
            if node["op"] in ("refuse", "scale"):
                return self.skipped(node["of"])
            self._skipped[at] = new = self.draft.add(node["op"])
            self.draft.nodes[new] = skipping(self._mapped(node, self.skipped))
        return self._skipped[at]

    def drop_tail(self, at: int) -> None:
        """Drop what lies behind the last field that is wanted."""
        node = self.draft.nodes[at]
        if node["op"] == "union":
            for branch in node["branches"]:
                self.drop_tail(branch)
        if node["op"] != "record" or at in self._shared():
            return
        while node["fields"] and node["fields"][-1]["name"] is None:
            node["fields"].pop()
        if node["fields"]:
            self.drop_tail(node["fields"][-1]["type"])

    def _shared(self) -> set[int]:
        return {*self._whole.values(), *self._skipped.values()}

    def _record(self, node: Mapping[str, Any], wanted: FieldTree) -> dict[str, Any]:
        fields = []
        for one in node["fields"]:
            if one["name"] in wanted:
                fields.append({"name": one["name"], "type": self.node(one["type"], wanted[one["name"]])})
            else:
                fields.append({"name": None, "type": self.skipped(one["type"])})
        absent = [
            {"name": one["name"], "constant": self._constant(one["constant"], wanted[one["name"]])}
            for one in node.get("absent", ())
            if one["name"] in wanted
        ]
        made = {"op": "record", "name": node["name"], "fields": fields, "absent": absent}
        if "order" in node:
            made["order"] = [name for name in node["order"] if name in wanted]
        return made

    def _constant(self, at: int, wanted: FieldTree) -> int:
        return self.draft.constant(projected(self._plan.constants[at], wanted))

    def _mapped(self, node: Mapping[str, Any], part: Any) -> dict[str, Any]:
        """Return *node* with *part* applied to the indices of its children."""
        made = dict(node)
        for key in ("items", "values", "of"):
            if key in node:
                made[key] = part(node[key])
        if "branches" in node:
            made["branches"] = [part(branch) for branch in node["branches"]]
        if "fields" in node:
            made["fields"] = [{"name": one["name"], "type": part(one["type"])} for one in node["fields"]]
        return made


def skipping(node: dict[str, Any]) -> dict[str, Any]:
    """Return *node* without conversions: it passes over the bytes that it would read."""
    plain = {key: value for key, value in node.items() if key not in ("as", "logical", "logical_name")}
    match plain["op"]:
        case "enum":
            return {"op": "int"}
        case "record":
            fields = [{"name": None, "type": one["type"]} for one in plain["fields"]]
            return {"op": "record", "name": plain["name"], "fields": fields, "absent": []}
    return plain


def projected(value: Any, wanted: FieldTree) -> Any:
    """Return what of a decoded value is *wanted*."""
    if not wanted:
        return value
    if isinstance(value, list):
        return [projected(item, wanted) for item in value]
    if isinstance(value, Mapping):
        return {name: projected(item, wanted[name]) for name, item in value.items() if name in wanted}
    return value
