"""A flow held against its site: topics that there are, schemas of their alerts.  Pure."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nightwire.filters.language import FilterError, compile_sql, missing_names, schema_names
from nightwire.filters.model import Transform, light_form
from nightwire.flows.model.flow import ELSE, Edge, Flow, FlowError, Stone
from nightwire.flows.model.kinds import seconds
from nightwire.schemas import SchemaError, derived_schema, meant, surveys
from nightwire.schemas.topics import COMPACTED, DEAD_LETTERS, NameError_, settings

Schemas = Callable[[str], Iterable[Mapping[str, Any]]]
"""The known schemas of a survey's alerts, the newest first."""

ONE_LINE = re.compile(r"^line 1: ")
CONTROL = {*COMPACTED, DEAD_LETTERS}
CONTROL_KINDS = {"requests", "answers", "seen", "multicast", "flow", "flow-state"}
"""Topics that are no flow's to write."""


@dataclass(frozen=True)
class EventType:
    """What goes along an edge: alerts of a survey, or, with an empty one, what a window says.

    Attributes:
        survey: Whose alerts.
        schemas: Those that they may have; none where none is known.
    """

    survey: str = ""
    schemas: tuple[Mapping[str, Any], ...] = ()


def router_conditions(stone: Stone) -> dict[str, str]:
    """Return the condition of each port of a router but the last, as SQL."""

    def quoted(value: Any) -> str:
        return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)

    by = stone.options["by"]
    return {str(value): f"{by} = {quoted(value)}" for value in stone.options["values"]}


def transform_of(stone: Stone, survey: str) -> Transform:
    """Return what a stone makes of alerts of *survey*."""
    usual = light_form(survey) if stone.options.get("lite") else {"drop": [], "means": []}
    drop, means = ((*stone.options.get(name, ()), *usual[name]) for name in ("drop", "means"))
    return Transform(tuple(drop), tuple(means))


def check(flow: Flow, topics: Collection[str], schemas: Schemas) -> dict[Edge, EventType]:
    """Return what goes along each edge.

    Args:
        flow: A flow.
        topics: Names of the topics that there are.
        schemas: Those of a survey's alerts, as far as they are known.

    Raises:
        FlowError: Something does not fit; says where and why.
    """
    wrong = [*_unknown_topics(flow, topics)]
    types: dict[Edge, EventType] = {}
    for source in flow.sources.values():
        if source.survey and source.survey not in surveys():
            near = meant(source.survey, surveys())
            wrong.append(f"line {source.line}: nobody has described survey {source.survey!r}{near}")
        else:
            known = (*schemas(source.survey),) if source.survey else ()
            types[Edge(source.name)] = EventType(source.survey, known)
    for stone in flow.stones.values():
        given = [types[edge] for edge in stone.inputs if edge in types]
        misfits = [*_misfits(stone, given)]
        wrong += misfits
        made = _outcome(stone, given[0]) if given and not misfits else None
        types |= {Edge(stone.name, port): made for port in stone.ports if made}
    if wrong:
        raise FlowError(wrong)
    return types


def _unknown_topics(flow: Flow, topics: Collection[str]) -> Iterator[str]:
    for source in flow.sources.values():
        if source.topic not in topics:
            yield f"line {source.line}: no topic {source.topic}{meant(source.topic, topics)}"
    read = {one.topic for one in flow.sources.values()}
    for stone in flow.stones.values():
        topic = stone.options.get("topic", "")
        if stone.kind != "topic":
            continue
        where = f"line {stone.lines.get('topic', 1)}:"
        if topic in CONTROL or topic.split(".")[0] in CONTROL_KINDS or topic.startswith("_"):
            yield f"{where} {topic} is no flow's to write"
        elif topic in read:
            yield f"{where} a cycle: the flow reads {topic}"
        elif topic not in topics and not _can_be_made(topic):
            yield f"{where} no topic {topic}{meant(topic, topics)}; make it, or write broker.NAME.STREAM"


def _can_be_made(topic: str) -> bool:
    try:
        return topic.startswith("broker.") and settings(topic).name == topic
    except (NameError_, SchemaError):
        return False


def _misfits(stone: Stone, given: Iterable[EventType]) -> Iterator[str]:
    """Yield why what comes to *stone* does not fit."""
    line, types = stone.lines.get("from", 1), [*given]
    if stone.about.alerts and not all(one.survey for one in types):
        why = f'a {stone.kind} wants alerts of a survey: name it at the source as survey = "…"'
        yield f"line {line}: stone {stone.name}: {why} (what windows say are none)"
        return
    if len({one.survey for one in types}) > 1:
        kinds = ", ".join(sorted({one.survey or "what a window says" for one in types}))
        yield f"line {line}: stone {stone.name}: {kinds} do not go together"
        return
    for one in types[:1]:
        yield from _wrong_options(stone, one)
    for key, text in _conditions(stone):
        for one in types if stone.about.alerts else ():
            yield from (
                f"line {stone.lines.get(key, line)}: {ONE_LINE.sub('', why)}" for why in _faults(text, one)
            )


def _conditions(stone: Stone) -> Iterator[tuple[str, str]]:
    """Yield the keys of a stone that ask for fields, and an SQL condition that asks alike."""
    if stone.kind == "filter":
        yield "where", stone.options["where"]
    elif stone.kind == "router":
        yield from (("by", text) for text in [*router_conditions(stone).values()][:1])
    elif stone.kind == "window":
        yield from (
            (key, f"{stone.options[key]} IS NOT NULL") for key in ("by", "value") if key in stone.options
        )


def _faults(text: str, given: EventType) -> list[str]:
    try:
        if not given.schemas:
            compile_sql(text, given.survey)
            return []
        return missing_names(text, given.survey, given.schemas)
    except FilterError as error:
        return [str(one) for one in error.reasons]


def _wrong_options(stone: Stone, given: EventType) -> Iterator[str]:
    """Yield what is wrong in the options of *stone*, taken together."""
    if stone.kind == "window":
        found = _wrong_window(stone)
    elif stone.kind == "router":
        found = _wrong_values(stone.options["values"])
    else:
        found = _unknown_fields(stone, given)
    for key, why in found:
        yield f"line {stone.lines.get(key, stone.lines.get('', 1))}: stone {stone.name}: {why}"


def _wrong_window(stone: Stone) -> Iterator[tuple[str, str]]:
    options = stone.options
    if options["function"] != "count" and "value" not in options:
        yield "function", f"a {options['function']} needs value: of which field"
    if seconds(options["within"]) > DAY:
        yield "within", "within is longer than a day"
    if "above" in options and "below" in options:
        yield "below", "above and below: a window has one threshold"


def _wrong_values(values: list[Any]) -> Iterator[tuple[str, str]]:
    if not values or not all(isinstance(one, str | int) for one in values):
        yield "values", "values are texts or whole numbers, one at least"
    elif ELSE in values or len({str(one) for one in values}) < len(values):
        yield "values", f"values are different, and none of them is {ELSE}"


def _unknown_fields(stone: Stone, given: EventType) -> Iterator[tuple[str, str]]:
    """Yield the fields that a transform names and no alert has."""
    if stone.kind != "transform":
        return
    names = [schema_names(schema) for schema in given.schemas]
    for key in ("drop", "means"):
        for path in stone.options.get(key, ()):
            if names and not any(one.has(str(path)) for one in names):
                yield key, f"alerts of {given.survey} have no field {path}"
    if not transform_of(stone, given.survey):
        yield "", "it changes nothing: give drop, means or lite"


DAY = 86_400.0  # [s]


def _outcome(stone: Stone, given: EventType) -> EventType:
    """Return what leaves *stone*."""
    if stone.kind == "window":
        return EventType()
    if stone.kind != "transform":
        return given
    transform = transform_of(stone, given.survey)
    made = (derived_schema(one, transform.drop, transform.fields()) for one in given.schemas)
    return EventType(given.survey, tuple(made))
