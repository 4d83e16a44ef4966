"""Expressions of generated source: what makes the values that a plan asks for of those that were read."""

from collections.abc import Callable, Mapping

from nightwire.schemas._program import Node, Program
from nightwire.schemas._source import Source

PROMOTED: Mapping[str, str] = {
    "long": "{}",
    "float": "float({})",
    "double": "float({})",
    "bytes": "{}.encode()",
    "string": "str({}, 'utf-8')",
}


def converted(source: Source, plan: Program, node: Node, text: str) -> str:
    """Return the expression of a value that is promoted and of a logical type, as its node says."""
    if "as" in node:
        text = PROMOTED[node["as"]].format(text)
    if "logical" in node:
        text = f"{source.name('convert', plan.converters[node['logical']])}({text})"
    return text


def scaled(node: Node, text: str) -> str:
    """Return the expression of a value that is converted."""
    return f"float({text}) * {float(node['factor'])!r} + {float(node['offset'])!r}"


def record_display(source: Source, plan: Program, node: Node, value: Callable[[int], str]) -> str:
    """Return the expression of a record: what was read, then what is absent, or in the order it names."""
    shown = {
        field["name"]: value(number)
        for number, field in enumerate(node["fields"])
        if field["name"] is not None
    }
    for field in node.get("absent", ()):
        shown[field["name"]] = constant(source, plan, field)
    names = node.get("order", shown)
    return "{" + ", ".join(f"{name!r}: {shown[name]}" for name in names) + "}"


def constant(source: Source, plan: Program, node: Node) -> str:
    """Return the expression of a constant; one that can be changed is copied each time."""
    value = plan.constants[node["constant"]]
    name = source.name("constant", value)
    return f"copied({name})" if isinstance(value, list | dict) else name
