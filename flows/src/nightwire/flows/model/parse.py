"""A flow's text: TOML, whose errors name their lines.  Pure."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any

from nightwire.consumers.source import parse_since
from nightwire.flows.model.flow import ENDS, TEXT, Edge, Flow, FlowError, Source, Stone
from nightwire.flows.model.kinds import KINDS, SHARED, wrong_option
from nightwire.schemas import meant
from nightwire.schemas.topics import NAME

SURVEY_TOPIC = re.compile(r"alerts\.(.+)")
HEADER = re.compile(r"\s*\[\s*([\w.\"'-]+)\s*\]")
KEY = re.compile(r"\s*[\"']?([\w-]+)[\"']?\s*=")
LONG = re.compile(r"\s*('''|\"\"\")")
MAX_TEXT = 256 << 10
"""Longest text. [byte]"""
MOST = 100
"""Most sources, and most stones, of a flow: each terminal is a thread of the worker."""
MOST_DOTS = 500
"""Most dots of a line: the time that a dotted key takes grows with their square."""
MOST_SAID = 20, 500
"""Most objections that are said, and most characters of each."""
SOURCE_KEYS = {"topic", "survey", "begin", "at"}


class Lines(dict[tuple[str, str], int]):
    """The lines of tables (``sources.lsst``) and their keys, as the text has them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        table = within = ""
        for number, line in enumerate(text.split("\n"), 1):
            if within:  # what looks like a key there is none
                within = "" if within in line else within
            elif found := HEADER.match(line):
                table = re.sub(r"[\"'\s]", "", found[1])
                self[table, ""] = number
            elif found := KEY.match(line):
                self.setdefault((table, found[1]), number)
                if opened := LONG.match(line, found.end()):
                    within = "" if opened[1] in line[opened.end() :] else opened[1]
                    self.setdefault((table, found[1] + TEXT), number + (not line[opened.end() :].strip()))

    def of(self, table: str, key: str = "") -> int:
        """Return the line of a key, else of its table, else 1."""
        return self.get((table, key)) or self.get((table, "")) or 1

    def keys_of(self, table: str) -> dict[str, int]:
        """Return the lines of the keys of a table."""
        return {key: line for (name, key), line in self.items() if name == table}


class Objections(list[str]):
    """What is wrong in a flow's text, each with its line."""

    def add(self, line: int, why: str) -> None:
        """Note an objection."""
        self.append(f"line {line}: {why}")

    def raise_any(self) -> None:
        """Raise FlowError where there are some."""
        most, length = MOST_SAID
        more = [f"and {len(self) - most} more"] if len(self) > most else []
        if self:
            raise FlowError([*(one[:length] for one in self[:most]), *more])


def parse(text: str) -> Flow:
    """Return the flow that *text* describes.

    Raises:
        FlowError: It describes none; says where and why.
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
    lines, wrong = Lines(text), Objections()
    for place in _beyond(found):
        wrong.add(lines.of(*place), "a number is beyond 64 bits, or none")
    wrong.raise_any()
    name = found.get("name")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        wrong.add(lines.of("", "name"), f"name = {name!r} is no flow's name, as bright-2 is: {NAME.pattern}")
    for key in set(found) - {"name", "sources", "stones"}:
        wrong.add(lines.of("", key), f"{key} is none of name, sources, stones")
    sources = _sources(_tables(found, "sources", lines, wrong), lines, wrong)
    stones = _stones(_tables(found, "stones", lines, wrong), lines, wrong)
    wrong.raise_any()
    _check_edges(sources, stones, wrong)
    order = _order(stones, wrong)
    wrong.raise_any()
    return Flow(str(name), sources, {one: stones[one] for one in order})


def _beyond(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield table and key of what cannot even be said: hexadecimal numbers have any length."""
    left: list[tuple[tuple[str, ...], Any]] = [((), found)]
    while left:
        path, value = left.pop()
        if isinstance(value, dict):
            left += [((*path, key)[:3], one) for key, one in value.items()]
        elif isinstance(value, list):
            left += [(path, one) for one in value]
        elif isinstance(value, int | float) and not -(1 << 63) <= value < 1 << 63:
            yield (".".join(path[:-1]), path[-1])


def _tables(
    found: Mapping[str, Any], kind: str, lines: Lines, wrong: Objections
) -> dict[str, dict[str, Any]]:
    tables = found.get(kind)
    if not isinstance(tables, dict) or not tables:
        wrong.add(lines.of(kind), f"there are no {kind}: write [{kind}.NAME]")
        return {}
    if len(tables) > MOST:
        wrong.add(lines.of(kind), f"{len(tables)} {kind} are too many: {MOST} at most")
        return {}
    for name, table in tables.items():
        where = lines.of(f"{kind}.{name}", "") if isinstance(table, dict) else lines.of(kind, name)
        if not NAME.fullmatch(name):
            wrong.add(where, f"{name!r} cannot be a name here: {NAME.pattern}")
        if not isinstance(table, dict):
            wrong.add(where, f"{kind}.{name} is no table: write [{kind}.{name}]")
    return {name: table for name, table in tables.items() if isinstance(table, dict)}


def _sources(tables: Mapping[str, dict[str, Any]], lines: Lines, wrong: Objections) -> dict[str, Source]:
    sources: dict[str, Source] = {}
    for name, table in tables.items():
        where = f"sources.{name}"
        for key in set(table) - SOURCE_KEYS:
            wrong.add(lines.of(where, key), f"{key} is none of {', '.join(sorted(SOURCE_KEYS))}")
        values = {key: table[key] for key in SOURCE_KEYS & set(table)}
        if bad := [key for key, value in values.items() if not isinstance(value, str)]:
            wrong.add(lines.of(where, bad[0]), f"{bad[0]} of source {name} is no text")
            continue
        if not values.get("topic"):
            wrong.add(lines.of(where), f"source {name} has no topic")
            continue
        if why := _wrong_begin(values.get("begin", "end"), values["topic"]):
            wrong.add(lines.of(where, "begin"), f"begin = {values['begin']!r} {why}")
        if values["topic"] in {one.topic for one in sources.values()}:
            wrong.add(lines.of(where, "topic"), f"{values['topic']} is a source already")
        survey = SURVEY_TOPIC.fullmatch(values["topic"])
        values.setdefault("survey", survey[1] if survey else "")
        sources[name] = Source(name, lines=lines.keys_of(where), **values)
    return sources


def _wrong_begin(begin: str, topic: str) -> str | None:
    """Return why a source of *topic* cannot begin there; None where it can."""
    if begin in ENDS:
        return None
    try:
        parse_since(begin)
    except ValueError as error:
        return f"is neither start nor end nor a time: {error}"
    return None if topic.startswith("alerts.") else "is a time: only topics alerts.SURVEY have a past"


def _stones(tables: Mapping[str, dict[str, Any]], lines: Lines, wrong: Objections) -> dict[str, Stone]:
    stones: dict[str, Stone] = {}
    for name, table in tables.items():
        where = f"stones.{name}"
        kind = KINDS.get(str(table.get("kind")))
        if kind is None:
            wrong.add(lines.of(where, "kind"), f"stone {name}: kind is none of {', '.join(KINDS)}")
            continue
        options = {key: value for key, value in table.items() if key not in SHARED}
        for key in kind.needs.keys() - options.keys():
            wrong.add(lines.of(where), f"stone {name}: a {table['kind']} needs {key}")
        for key, value in options.items():
            if why := wrong_option(kind, key, value):
                wrong.add(lines.of(where, key), f"stone {name}: {why}")
        given = table.get("from", [])
        inputs = [given] if isinstance(given, str) else given
        if not isinstance(inputs, list) or not inputs or not all(isinstance(one, str) for one in inputs):
            wrong.add(
                lines.of(where, "from"),
                f"stone {name}: from is the name of a source or stone, or a list of such",
            )
            continue
        edges = tuple(dict.fromkeys(Edge(*one.split(".", 1)) for one in inputs))
        at = str(table.get("at", ""))
        if at and table["kind"] == "topic":
            wrong.add(lines.of(where, "at"), f"stone {name}: a topic is written by those before it")
        stones[name] = Stone(name, table["kind"], edges, at, options, lines.keys_of(where))
    return stones


def _check_edges(sources: Mapping[str, Source], stones: Mapping[str, Stone], wrong: Objections) -> None:
    names = {*sources, *stones}
    for both in sources.keys() & stones.keys():
        wrong.add(stones[both].lines.get("", 1), f"{both} is the name of a source and of a stone")
    for stone in stones.values():
        line = stone.lines.get("from", stone.lines.get("", 1))
        for edge in stone.inputs:
            if edge.node not in names:
                near = meant(edge.node, sorted(names))
                wrong.add(line, f"stone {stone.name}: there is no {edge.node}{near}")
                continue
            ports = stones[edge.node].ports if edge.node in stones else ("",)
            if not ports:
                wrong.add(line, f"stone {stone.name}: nothing leaves {edge.node}, a terminal")
            elif edge.port not in ports:
                ways = ", ".join(f"{edge.node}.{port}" if port else edge.node for port in ports)
                wrong.add(line, f"stone {stone.name}: no such way out of {edge.node}; there are: {ways}")


def _order(stones: Mapping[str, Stone], wrong: Objections) -> list[str]:
    graph = {one.name: [edge.node for edge in one.inputs if edge.node in stones] for one in stones.values()}
    try:
        return [*TopologicalSorter(graph).static_order()]
    except CycleError as error:
        nodes: list[str] = error.args[1]
        first = min(nodes, key=lambda one: stones[one].lines.get("from", 1))
        wrong.add(stones[first].lines.get("from", 1), f"a cycle: {' → '.join(reversed(nodes))}")
        return []
