"""The parser of flows: TOML, with errors that name their lines.  Pure."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any

from nightwire.consumers.source import parse_since
from nightwire.flows.model.flow import ENDS, TEXT, Edge, Flow, FlowError, Source, Stone
from nightwire.flows.model.kinds import KINDS, SHARED, option_error
from nightwire.schemas import meant
from nightwire.schemas.topics import NAME

SURVEY_TOPIC = re.compile(r"alerts\.(.+)")
HEADER = re.compile(r"\s*\[\s*([\w.\"'-]+)\s*\]")
KEY = re.compile(r"\s*[\"']?([\w-]+)[\"']?\s*=")
MULTILINE = re.compile(r"\s*('''|\"\"\")")
MAX_TEXT = 256 << 10
"""Longest text. [byte]"""
MOST_NODES = 100
"""Most sources, and most stones, of a flow: each terminal is a thread of the worker."""
MOST_DOTS = 500
"""Most dots of a line: the time that a dotted key takes grows with their square."""
ERROR_LIMITS = 20, 500
"""Most errors that are reported, and most characters of each."""
SOURCE_KEYS = {"topic", "survey", "begin", "at"}


class LineNumbers(dict[tuple[str, str], int]):
    """Line numbers of tables (``sources.lsst``) and their keys."""

    def __init__(self, text: str) -> None:
        super().__init__()
        table = within = ""
        for number, line in enumerate(text.split("\n"), 1):
            if within:  # of a multi-line text, which has no keys
                within = "" if within in line else within
            elif found := HEADER.match(line):
                table = re.sub(r"[\"'\s]", "", found[1])
                self[table, ""] = number
            elif found := KEY.match(line):
                self.setdefault((table, found[1]), number)
                if opened := MULTILINE.match(line, found.end()):
                    within = "" if opened[1] in line[opened.end() :] else opened[1]
                    self.setdefault((table, found[1] + TEXT), number + (not line[opened.end() :].strip()))

    def of(self, table: str, key: str = "") -> int:
        """Return the line of a key, else that of its table, else 1."""
        return self.get((table, key)) or self.get((table, "")) or 1

    def keys_of(self, table: str) -> dict[str, int]:
        """Return the lines of the keys of a table."""
        return {key: line for (name, key), line in self.items() if name == table}


class LineErrors(list[str]):
    """The errors in *text*, each with its line."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.lines = LineNumbers(text)

    def add(self, why: str, table: str, key: str = "") -> None:
        """Add an error in a key, or in a table as a whole."""
        self.append(f"line {self.lines.of(table, key)}: {why}")

    def raise_any(self) -> None:
        """Raise FlowError where there are errors."""
        most, length = ERROR_LIMITS
        more = [f"and {len(self) - most} more"] if len(self) > most else []
        if self:
            raise FlowError([*(one[:length] for one in self[:most]), *more])


def parse(text: str) -> Flow:
    """Return the flow that *text* describes.

    Raises:
        FlowError: *text* describes none; the reasons name their lines.
    """
    if len(text) > MAX_TEXT:
        raise FlowError([f"the text has {len(text)} characters, the limit is {MAX_TEXT}"])
    if any(line.count(".") > MOST_DOTS for line in text.split("\n")):
        raise FlowError([f"no TOML: a line has more than {MOST_DOTS} dots"])
    try:
        found = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # numbers of 5000 digits, lists in lists in lists
        what, _, where = str(error).partition(" (at ")
        where = where.removesuffix(")") if where.startswith("line") else f"line {len(text.splitlines()) or 1}"
        raise FlowError([f"{where}: no TOML: {what}"]) from error
    errors = LineErrors(text)
    for place in _oversized_numbers(found):
        errors.add("a number is beyond 64 bits, or none", *place)
    errors.raise_any()
    name = found.get("name")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        errors.add(f"name = {name!r} is no flow's name, as bright-2 is: {NAME.pattern}", "", "name")
    for key in set(found) - {"name", "sources", "stones"}:
        errors.add(f"{key} is none of name, sources, stones", "", key)
    sources = _sources(_tables(found, "sources", errors), errors)
    stones = _stones(_tables(found, "stones", errors), errors)
    errors.raise_any()
    _check_edges(sources, stones, errors)
    order = _order(stones, errors)
    errors.raise_any()
    return Flow(str(name), sources, {one: stones[one] for one in order})


def _oversized_numbers(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield table and key of numbers beyond 64 bits, which `repr` may refuse to print."""
    stack: list[tuple[tuple[str, ...], Any]] = [((), found)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, dict):
            stack += [((*path, key)[:3], one) for key, one in value.items()]
        elif isinstance(value, list):
            stack += [(path, one) for one in value]
        elif isinstance(value, int | float) and not -(1 << 63) <= value < 1 << 63:
            yield (".".join(path[:-1]), path[-1])


def _tables(found: Mapping[str, Any], kind: str, errors: LineErrors) -> dict[str, dict[str, Any]]:
    tables = found.get(kind)
    if not isinstance(tables, dict) or not tables:
        errors.add(f"there are no {kind}: write [{kind}.NAME]", kind)
        return {}
    if len(tables) > MOST_NODES:
        errors.add(f"{len(tables)} {kind} are too many: {MOST_NODES} at most", kind)
        return {}
    for name, table in tables.items():
        where = (f"{kind}.{name}", "") if isinstance(table, dict) else (kind, name)
        if not NAME.fullmatch(name):
            errors.add(f"{name!r} cannot be a name here: {NAME.pattern}", *where)
        if not isinstance(table, dict):
            errors.add(f"{kind}.{name} is no table: write [{kind}.{name}]", *where)
    return {name: table for name, table in tables.items() if isinstance(table, dict)}


def _sources(tables: Mapping[str, dict[str, Any]], errors: LineErrors) -> dict[str, Source]:
    sources: dict[str, Source] = {}
    for name, table in tables.items():
        where = f"sources.{name}"
        for key in set(table) - SOURCE_KEYS:
            errors.add(f"{key} is none of {', '.join(sorted(SOURCE_KEYS))}", where, key)
        values = {key: table[key] for key in SOURCE_KEYS & set(table)}
        if bad := [key for key, value in values.items() if not isinstance(value, str)]:
            errors.add(f"{bad[0]} of source {name} is no text", where, bad[0])
            continue
        if not values.get("topic"):
            errors.add(f"source {name} has no topic", where)
            continue
        if why := _begin_error(values.get("begin", "end"), values["topic"]):
            errors.add(f"begin = {values['begin']!r} {why}", where, "begin")
        if values["topic"] in {one.topic for one in sources.values()}:
            errors.add(f"{values['topic']} is a source already", where, "topic")
        survey = SURVEY_TOPIC.fullmatch(values["topic"])
        values.setdefault("survey", survey[1] if survey else "")
        values["worker"] = values.pop("at", "")
        sources[name] = Source(name, lines=errors.lines.keys_of(where), **values)
    return sources


def _begin_error(begin: str, topic: str) -> str | None:
    """Return why a source of *topic* cannot begin at *begin*; None where it can."""
    if begin in ENDS:
        return None
    try:
        parse_since(begin)
    except ValueError as error:
        return f"is neither start nor end nor a time: {error}"
    return None if topic.startswith("alerts.") else "is a time: only topics alerts.SURVEY have a past"


def _stones(tables: Mapping[str, dict[str, Any]], errors: LineErrors) -> dict[str, Stone]:
    stones: dict[str, Stone] = {}
    for name, table in tables.items():
        where = f"stones.{name}"
        kind = KINDS.get(str(table.get("kind")))
        if kind is None:
            errors.add(f"stone {name}: kind is none of {', '.join(KINDS)}", where, "kind")
            continue
        options = {key: value for key, value in table.items() if key not in SHARED}
        for key in kind.required.keys() - options.keys():
            errors.add(f"stone {name}: a {table['kind']} needs {key}", where)
        for key, value in options.items():
            if why := option_error(kind, key, value):
                errors.add(f"stone {name}: {why}", where, key)
        given = table.get("from", [])
        inputs = [given] if isinstance(given, str) else given
        if not isinstance(inputs, list) or not inputs or not all(isinstance(one, str) for one in inputs):
            why = f"stone {name}: from is the name of a source or stone, or a list of such"
            errors.add(why, where, "from")
            continue
        edges = tuple(dict.fromkeys(Edge(*one.split(".", 1)) for one in inputs))
        worker = str(table.get("at", ""))
        if worker and table["kind"] == "topic":
            errors.add(f"stone {name}: a topic is written by those before it", where, "at")
        stones[name] = Stone(name, table["kind"], edges, worker, options, errors.lines.keys_of(where))
    return stones


def _check_edges(sources: Mapping[str, Source], stones: Mapping[str, Stone], errors: LineErrors) -> None:
    names = {*sources, *stones}
    for both in sources.keys() & stones.keys():
        errors.add(f"{both} is the name of a source and of a stone", f"stones.{both}")
    for stone in stones.values():
        place = f"stones.{stone.name}", "from"
        for edge in stone.inputs:
            if edge.node not in names:
                near = meant(edge.node, sorted(names))
                errors.add(f"stone {stone.name}: there is no {edge.node}{near}", *place)
                continue
            ports = stones[edge.node].ports if edge.node in stones else ("",)
            if not ports:
                errors.add(f"stone {stone.name}: nothing leaves {edge.node}, a terminal", *place)
            elif edge.port not in ports:
                ways = ", ".join(f"{edge.node}.{port}" if port else edge.node for port in ports)
                errors.add(f"stone {stone.name}: no such way out of {edge.node}; there are: {ways}", *place)


def _order(stones: Mapping[str, Stone], errors: LineErrors) -> list[str]:
    graph = {one.name: [edge.node for edge in one.inputs if edge.node in stones] for one in stones.values()}
    try:
        return [*TopologicalSorter(graph).static_order()]
    except CycleError as error:
        nodes: list[str] = error.args[1]
        first = min(nodes, key=lambda one: stones[one].lines.get("from", 1))
        errors.add(f"a cycle: {' → '.join(reversed(nodes))}", f"stones.{first}", "from")
        return []
