"""The schemas in `xsd/`, compiled for the native check: types that refer to each other by number.

The content model of an element is an automaton over its children.  A model is a tree of tuples, and
its rest after a child is its derivative (Brzozowski 1964), so the states are the possible rests.

The schemas stay the only place where it is written what an event may hold.  Whatever they come to
use that is not compiled here is refused, not left out.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

from lxml import etree

Model: TypeAlias = tuple[Any, ...]

NOTHING: Model = ("nothing",)
"""No children at all."""
_NEVER: Model = ("never",)


def child(name: str) -> Model:
    """Return the model of one child."""
    return ("child", name)


def sequence(models: Iterable[Model]) -> Model:
    """Return the model of *models* one after the other."""
    left = NOTHING
    for model in models:
        left = _then(left, model)
    return left


def choice(models: Iterable[Model]) -> Model:
    """Return the model of one of *models*."""
    return ("choice", frozenset(models))


def in_any_order(needed: Iterable[str], optional: Iterable[str]) -> Model:
    """Return the model of children that come once each, in any order."""
    return ("all", frozenset(needed), frozenset(optional))


def times(model: Model, least: int, most: int | None) -> Model:
    """Return *model* so many times, without bound where *most* is None.

    Raises:
        ValueError: The bounds are others than 0, 1 and none.
    """
    if least not in (0, 1) or most not in (1, None):
        raise ValueError(f"{least} to {most} times is not compiled")
    if most == 1:
        return model if least else choice([model, NOTHING])
    repeated = ("repeat", model)
    return _then(model, repeated) if least else repeated


def states(model: Model, names: list[str]) -> tuple[list[list[int | None]], list[bool]]:
    """Return the next state by each of *names*, and whether the element may end, per state."""
    numbers, waiting = {model: 0}, [model]
    table: list[list[int | None]] = []
    while len(table) < len(waiting):
        row: list[int | None] = []
        for name in names:
            left = _after(waiting[len(table)], name)
            if left not in numbers and left != _NEVER:
                numbers[left] = len(waiting)
                waiting.append(left)
            row.append(numbers.get(left))
        table.append(row)
    return table, [_may_end(one) for one in waiting]


def _then(first: Model, second: Model) -> Model:
    if _NEVER in (first, second):
        return _NEVER
    if first == NOTHING:
        return second
    return first if second == NOTHING else ("then", first, second)


def _either(models: Iterable[Model]) -> Model:
    possible = frozenset(model for model in models if model != _NEVER)
    if not possible:
        return _NEVER
    return next(iter(possible)) if len(possible) == 1 else ("choice", possible)


def _may_end(model: Model) -> bool:
    kinds: dict[str, Callable[..., bool]] = {
        "nothing": lambda: True,
        "never": lambda: False,
        "child": lambda name: False,
        "then": lambda first, second: _may_end(first) and _may_end(second),
        "choice": lambda models: any(map(_may_end, models)),
        "repeat": lambda inner: True,
        "all": lambda needed, optional: not needed,
    }
    return kinds[model[0]](*model[1:])


def _after(model: Model, name: str) -> Model:
    """Return what is left of *model* after a child of this *name*."""
    match model:
        case ("child", wanted):
            return NOTHING if wanted == name else _NEVER
        case ("then", first, second):
            left = _then(_after(first, name), second)
            return _either([left, _after(second, name)]) if _may_end(first) else left
        case ("choice", models):
            return _either(_after(one, name) for one in models)
        case ("repeat", inner):
            return _then(_after(inner, name), model)
        case ("all", needed, optional) if name in needed | optional:
            return ("all", needed - {name}, optional - {name})
    return _NEVER


SchemaTable = dict[str, Any]

_XS = "{http://www.w3.org/2001/XMLSchema}"
_ANY_TYPE: SchemaTable = {
    "attributes": [],
    "more_attributes": True,
    "content": {"kind": "any", "mixed": True},
}
_SIMPLE: dict[str, SchemaTable] = {
    "string": {"kind": "string"},
    "token": {"kind": "token"},
    "float": {"kind": "float"},
    "dateTime": {"kind": "datetime"},
    "anyURI": {"kind": "anyuri"},
    "ID": {"kind": "id"},
}
_PARTICLES = ("sequence", "choice", "all", "group")


def compile_schema(file: Path) -> SchemaTable:
    """Return the table of the schema in *file*, as `native/src/voevent/tables.rs` reads it.

    Raises:
        ValueError: The schema uses something that is not compiled.
    """
    return _Compiler(file).table()


class _Compiler:
    """One schema, with what it includes and imports."""

    def __init__(self, file: Path) -> None:
        self._globals: dict[tuple[str, str], etree._Element] = {}
        self._targets: dict[etree._Element, str] = {}
        self._types: list[SchemaTable] = [_ANY_TYPE]
        self._simple: list[SchemaTable] = []
        self._known: dict[str | etree._Element, int] = {}
        self._target = self._read(file, "")

    def table(self) -> SchemaTable:
        """Return it all; the schema's own elements come before those that it imports."""
        roots = [self._child(node) for (kind, _), node in self._globals.items() if kind == "element"]
        roots.sort(key=lambda root: bool(root["namespace"] != self._target))
        return {"namespace": self._target, "types": self._types, "simple": self._simple, "roots": roots}

    def _read(self, file: Path, includer: str) -> str:
        """Read the declarations of *file*; return its namespace, maybe that of its *includer*."""
        root = etree.parse(file, etree.XMLParser(no_network=True)).getroot()
        target = self._targets[root] = str(root.get("targetNamespace", includer))
        for node in _inside(root):
            if _kind(node) in ("include", "import"):
                self._read(file.parent / str(node.get("schemaLocation")), target)
            else:
                self._globals[_kind(node), f"{{{target}}}{node.get('name')}"] = node
        return target

    def _name(self, node: etree._Element, attribute: str) -> str:
        """Return the name with its namespace that *attribute* refers to."""
        prefix, _, local = str(node.get(attribute)).rpartition(":")
        namespace = node.nsmap.get(prefix or None) or self._targets[_root(node)]
        return f"{{{namespace}}}{local}"

    def _referred(self, node: etree._Element) -> etree._Element:
        return self._globals[_kind(node), self._name(node, "ref")]

    def _child(self, node: etree._Element) -> SchemaTable:
        """Return an element that may be there: its name, and the number of its type."""
        node = self._referred(node) if node.get("ref") else node
        root = _root(node)
        qualified = node.getparent() is root or root.get("elementFormDefault") == "qualified"
        namespace = self._targets[root] if qualified else ""
        return {"namespace": namespace, "name": str(node.get("name")), "type": self._type_of(node)}

    def _type_of(self, node: etree._Element) -> int:
        """Return the number of the type of an element."""
        if node.get("type") is None:
            inside = next(_inside(node), None)
            return 0 if inside is None else self._complex(inside)
        name = self._name(node, "type")
        if ("complexType", name) in self._globals:
            return self._complex(self._globals["complexType", name])
        return self._add(name, {"kind": "text", "simple": self._simple_type(name)}, [])

    def _complex(self, node: etree._Element) -> int:
        """Return the number of a complex type."""
        if node in self._known:
            return self._known[node]
        if _kind(node) != "complexType":
            raise _not_compiled(node)
        parts = list(_inside(node))
        if parts and _kind(parts[0]) == "simpleContent":
            (extension,) = _inside(parts[0])
            content: SchemaTable = {
                "kind": "text",
                "simple": self._simple_type(self._name(extension, "base")),
            }
            return self._add(node, content, list(_inside(extension)))
        has_model = bool(parts) and _kind(parts[0]) in _PARTICLES
        content = self._content(parts[0]) if has_model else {"kind": "empty"}
        return self._add(node, content, parts[has_model:])

    def _add(self, key: str | etree._Element, content: SchemaTable, attributes: list[etree._Element]) -> int:
        if key not in self._known:
            more = any(_kind(node) == "anyAttribute" for node in attributes)
            wanted = [one for node in attributes for one in self._attributes(node)]
            self._known[key] = len(self._types)
            self._types.append({"attributes": wanted, "more_attributes": more, "content": content})
        return self._known[key]

    def _attributes(self, node: etree._Element) -> Iterator[SchemaTable]:
        """Yield the attributes that *node* allows."""
        if _kind(node) == "attributeGroup":
            for inside in _inside(self._referred(node)):
                yield from self._attributes(inside)
        elif _kind(node) == "attribute":
            kind = self._simple_type(self._name(node, "type")) if node.get("type") else self._inline(node)
            required, fixed = node.get("use") == "required", node.get("fixed")
            yield {"name": node.get("name"), "simple": kind, "required": required, "fixed": fixed}
        elif _kind(node) != "anyAttribute":
            raise _not_compiled(node)

    def _inline(self, node: etree._Element) -> int:
        inside = next(_inside(node), None)
        return self._number({"kind": "string"} if inside is None else self._restricted(inside))

    def _simple_type(self, name: str) -> int:
        """Return the number of a simple type."""
        if name.startswith(_XS):
            return self._number(_SIMPLE[name.removeprefix(_XS)])
        return self._number(self._restricted(self._globals["simpleType", name]))

    def _number(self, simple: SchemaTable) -> int:
        if simple not in self._simple:
            self._simple.append(simple)
        return self._simple.index(simple)

    def _restricted(self, node: etree._Element) -> SchemaTable:
        """Return a simple type that is a restriction of one of XML Schema's own."""
        (restriction,) = _inside(node)
        base = _SIMPLE[self._name(restriction, "base").removeprefix(_XS)]["kind"]
        facets = [(_kind(facet), str(facet.get("value"))) for facet in _inside(restriction)]
        kinds = {kind for kind, _ in facets}
        if kinds == {"enumeration"} and base in ("string", "token"):
            return {"kind": "choice", "values": [value for _, value in facets], "tokens": base == "token"}
        if kinds <= {"minInclusive", "maxInclusive"} and base == "float":
            bounds = {kind: float(value) for kind, value in facets}
            return {"kind": "float", "low": bounds.get("minInclusive"), "high": bounds.get("maxInclusive")}
        raise _not_compiled(restriction)

    def _content(self, node: etree._Element) -> SchemaTable:
        """Return what children there may be."""
        if [_kind(inside) for inside in _inside(node)] == ["any"]:
            return {"kind": "any", "mixed": False}
        children: dict[str, SchemaTable] = {}
        model = self._model(node, children)
        table, ends = states(model, list(children))
        return {"kind": "elements", "children": list(children.values()), "next": table, "ends": ends}

    def _model(self, node: etree._Element, children: dict[str, SchemaTable]) -> Model:
        """Return the model that *node* is, and add its elements to *children*."""
        if _kind(node) == "all":
            return self._in_any_order(node, children)
        return times(self._once(node, children), *_bounds(node))

    def _once(self, node: etree._Element, children: dict[str, SchemaTable]) -> Model:
        match _kind(node):
            case "element":
                return child(self._note(node, children))
            case "group":
                (inside,) = _inside(self._referred(node))
                return self._model(inside, children)
            case "sequence":
                return sequence(self._model(inside, children) for inside in _inside(node))
            case "choice":
                return choice(self._model(inside, children) for inside in _inside(node))
        raise _not_compiled(node)

    def _in_any_order(self, node: etree._Element, children: dict[str, SchemaTable]) -> Model:
        names: dict[bool, list[str]] = {True: [], False: []}
        for inside in _inside(node):
            if _kind(inside) != "element" or _bounds(inside)[1] != 1:
                raise _not_compiled(inside)
            names[_bounds(inside)[0] == 1].append(self._note(inside, children))
        return in_any_order(needed=names[True], optional=names[False])

    def _note(self, node: etree._Element, children: dict[str, SchemaTable]) -> str:
        found = self._child(node)
        key = f"{{{found['namespace']}}}{found['name']}"
        if children.setdefault(key, found) != found:
            raise ValueError(f"line {node.sourceline}: {key} has two types in one place")
        return key


def _inside(node: etree._Element) -> Iterator[etree._Element]:
    return node.iterchildren(f"{_XS}*")


def _kind(node: etree._Element) -> str:
    return str(node.tag).removeprefix(_XS)


def _root(node: etree._Element) -> etree._Element:
    return node.getroottree().getroot()


def _bounds(node: etree._Element) -> tuple[int, int | None]:
    most = node.get("maxOccurs", "1")
    return int(node.get("minOccurs", "1")), None if most == "unbounded" else int(most)


def _not_compiled(node: etree._Element) -> ValueError:
    return ValueError(f"{node.base}, line {node.sourceline}: xs:{_kind(node)} is not compiled here")
