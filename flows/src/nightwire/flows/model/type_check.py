"""The check of a flow against its site's topics and schemas."""

import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nightwire.filters.admission import shape_mismatches
from nightwire.filters.language import FilterError, Program, compile_sql, missing_names, schema_names
from nightwire.filters.model import Compilation, Transform, light_form, load_facts, matches_named
from nightwire.flows.model.flow import ELSE, TEXT, Edge, Flow, FlowError, Source, Stone
from nightwire.flows.model.functions import compile_filter, compile_transform
from nightwire.flows.model.kinds import ALERTS, JOINS, RETURNS, VOEVENTS, WINDOWS, seconds
from nightwire.schemas import Codec, SchemaError, derived_schema, meant, surveys
from nightwire.schemas.topics import COMPACTED, DEAD_LETTERS, NameError_, settings
from nightwire.schemas.topics import VOEVENTS as VOEVENTS_TOPIC

Schemas = Callable[[str], Iterable[Mapping[str, Any]]]
"""Returns the known schemas of a survey's alerts, the newest first."""

NO_CATALOGUES = "a flow knows no catalogues: submit that as a filter, and let the flow read its topic"
FIELD = re.compile(r"[\w.]+")
TEMPLATE_FIELD = re.compile(r"(?<!\$)\$\{([\w.]+)\}")
"""A field in a template."""
ERROR_LINE = re.compile(r"^line (\d+)(?:, column (\d+))?: ")
DERIVED = {(WINDOWS, ""), (JOINS, "")}
"""Types of derived events, which name their flow and stone: one terminal may take both."""
RESERVED = {*COMPACTED, DEAD_LETTERS}
RESERVED_KINDS = {"requests", "answers", "seen", "multicast", "flow", "flow-state"}
"""Topics, and first words of topics, that no flow may write."""


@dataclass(frozen=True)
class EventType:
    """The type of the events along an edge.

    Attributes:
        kind: One of the kinds in `Kind.accepts`.
        survey: Survey of the alerts or returns; empty for unknown.
        schemas: The schemas that alerts may have; none where none is known.
    """

    kind: str = ALERTS
    survey: str = ""
    schemas: tuple[Mapping[str, Any], ...] = ()


def router_conditions(stone: Stone) -> dict[str, str]:
    """Return the condition of each port of a router but the last, as SQL."""

    def quoted(value: Any) -> str:
        return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)

    by = stone.options["by"]
    return {str(value): f"{by} = {quoted(value)}" for value in stone.options["values"]}


def field_of(name: str, survey: str) -> str:
    """Return the path, or canonical name, of the field that a condition calls *name*."""
    return next(iter(compile_sql(f"{name} IS NULL", survey).names))


def transform_of(stone: Stone, survey: str) -> Transform:
    """Return the transform of a stone over alerts of *survey*.

    Raises:
        FilterError: The stone's function is no transform.
    """
    usual = light_form(survey) if stone.options.get("lite") else {"drop": [], "means": []}
    drop, means = ((*stone.options.get(name, ()), *usual[name]) for name in ("drop", "means"))
    source = stone.options.get("python")
    adds = load_facts(compile_transform(source, survey).facts).adds if source is not None else ()
    return Transform(tuple(drop), tuple(means), adds)


def check(
    flow: Flow, topics: Collection[str], schemas: Schemas, others: Collection[Flow] = ()
) -> dict[Edge, EventType]:
    """Return the type of each edge.

    Args:
        flow: The flow.
        topics: Names of Kafka's topics.
        schemas: Returns those of a survey.
        others: The site's other flows, with which it may be a cycle.

    Raises:
        FlowError: The flow cannot run here; the reasons name their lines.
    """
    wrong = [*_topic_errors(flow, topics), *_cycle_errors(flow, others)]
    types: dict[Edge, EventType] = {}
    for source in flow.sources.values():
        if source.survey and source.survey not in surveys():
            near = meant(source.survey, surveys())
            line = source.line("survey" if "survey" in source.lines else "topic")
            wrong.append(f"line {line}: nobody has described survey {source.survey!r}{near}")
        else:
            types[Edge(source.name)] = _source_type(source, schemas)
    for stone in flow.stones.values():
        incoming = [types[edge] for edge in stone.inputs if edge in types]
        errors = [*_input_errors(stone, incoming)]
        wrong += errors
        output = _output_type(stone, incoming[0]) if incoming and not errors else None
        types |= {Edge(stone.name, port): output for port in stone.ports if output}
    if wrong:
        raise FlowError(wrong)
    return types


def _source_type(source: Source, schemas: Schemas) -> EventType:
    """Return the type of a source's events."""
    if source.topic == VOEVENTS_TOPIC:
        return EventType(VOEVENTS)
    if source.topic.startswith("returns."):
        return EventType(RETURNS, source.survey)
    return EventType(ALERTS, source.survey, (*schemas(source.survey),) if source.survey else ())


def _topic_errors(flow: Flow, topics: Collection[str]) -> Iterator[str]:
    for source in flow.sources.values():
        if source.topic not in topics:
            near = meant(source.topic, topics) or "; `nightwire topics` lists those that there are"
            yield f"line {source.line('topic')}: no topic {source.topic}{near}"
    for stone in flow.stones.values():
        topic = stone.options.get("topic", "")
        if stone.kind not in {"topic", "bridge"}:
            continue
        where = f"line {stone.lines.get('topic', 1)}:"
        if topic in RESERVED or topic.split(".")[0] in RESERVED_KINDS or topic.startswith("_"):
            yield f"{where} {topic} is no flow's to write"
        elif stone.kind == "topic" and topic not in topics and not _is_creatable(topic):
            yield f"{where} no topic {topic}{meant(topic, topics)}; make it, or write broker.NAME.STREAM"


def _cycle_errors(flow: Flow, others: Collection[Flow]) -> Iterator[str]:
    """Yield the cycles by which events that *flow* writes come back to it."""
    for stone in flow.stones.values():
        if stone.kind == "topic" and (path := _path_back(stone.options["topic"], flow, others)):
            by = f", by way of {' → '.join(path)}" if len(path) > 1 else ""
            yield f"line {stone.lines.get('topic', 1)}: a cycle: the flow reads {path[-1]}{by}"


def _path_back(topic: str, flow: Flow, others: Collection[Flow]) -> list[str]:
    """Return the topics and flows from *topic* to one that *flow* reads; empty for no cycle."""
    paths, seen = deque([[topic]]), {topic}
    while paths:
        path = paths.popleft()
        if path[-1] in flow.input_topics:
            return path
        for other in others:
            if other.name != flow.name and path[-1] in other.input_topics:
                paths.extend([*path, other.name, written] for written in sorted(other.output_topics - seen))
                seen |= other.output_topics
    return []


def _is_creatable(topic: str) -> bool:
    try:
        return topic.startswith("broker.") and settings(topic).name == topic
    except (NameError_, SchemaError):
        return False


def _input_errors(stone: Stone, incoming: Sequence[EventType]) -> Iterator[str]:
    """Yield the errors of *stone* with the types of its inputs."""
    line, accepts = stone.lines.get("from", 1), stone.spec.accepts
    if bad := [one for one in incoming if accepts and (one.kind not in accepts or not _is_known(one))]:
        why = ' of a survey: name it at the source as survey = "…"'
        why = why if bad[0].kind in accepts else f", not {bad[0].kind}"
        yield f"line {line}: stone {stone.name}: a {stone.kind} wants {' or '.join(sorted(accepts))}{why}"
        return
    if stone.kind == "join" and not any(one.kind == ALERTS for one in incoming):
        yield f"line {line}: stone {stone.name}: a join wants alerts, and returns beside them or none"
    kinds = {(one.kind if stone.kind != "join" else ALERTS, one.survey) for one in incoming}
    if len(kinds) > 1 and not (stone.spec.terminal and kinds <= DERIVED):
        names = ", ".join(sorted(f"{kind} of {survey or 'no survey'}" for kind, survey in kinds))
        yield f"line {line}: stone {stone.name}: {names} do not go together"
        return
    for one in incoming[:1]:
        yield from _option_errors(stone, one)
    alerts = [one for one in incoming if one.kind == ALERTS and one.survey]
    for key, text in _conditions(stone):
        for one in alerts:
            yield from (_at_file_line(why, stone, key) for why in _condition_errors(text, one))
    for one in alerts if "python" in stone.options else ():
        yield from (_at_file_line(why, stone, "python") for why in _function_errors(stone, one))


def _at_file_line(why: str, stone: Stone, key: str) -> str:
    """Return *why*, an error in the text of *key*, with the line of the file."""
    begin = stone.lines.get(f"{key}{TEXT}", stone.lines.get(key, stone.lines.get("from", 1)))
    found = ERROR_LINE.match(why)
    number, column = (int(found[1]), found[2]) if found else (1, None)
    place = f"character {column}: " if column else ""
    return f"line {begin + number - 1}: {place}{why[found.end() :] if found else why}"


def _is_known(incoming: EventType) -> bool:
    return incoming.survey != "" or incoming.kind == VOEVENTS


def _conditions(stone: Stone) -> Iterator[tuple[str, str]]:
    """Yield the keys of a stone that name fields, and an SQL condition on the same fields."""
    if stone.kind == "filter" and "where" in stone.options:
        yield "where", stone.options["where"]
    elif stone.kind == "router":
        yield from (("by", text) for text in [*router_conditions(stone).values()][:1])
    elif stone.kind == "window":
        yield from (
            (key, f"{stone.options[key]} IS NOT NULL") for key in ("by", "value") if key in stone.options
        )


def _condition_errors(text: str, incoming: EventType) -> list[str]:
    try:
        return _program_errors(compile_sql(text, incoming.survey), incoming)
    except FilterError as error:
        return [str(one) for one in error.reasons]


def _function_errors(stone: Stone, incoming: EventType) -> list[str]:
    """Return the errors of the function of *stone*, with the lines of its text."""
    source = stone.options["python"]
    try:
        found = (compile_filter if stone.kind == "filter" else compile_transform)(source, incoming.survey)
    except FilterError as error:
        return [str(one) for one in error.reasons]
    if found.program is not None and stone.kind == "filter":
        return _program_errors(found.program, incoming)
    unknown = missing_names(found.asked, incoming.survey, incoming.schemas)
    return [*unknown, *_added_field_errors(stone, found, incoming)]


def _program_errors(program: Program, incoming: EventType) -> list[str]:
    catalogues = [NO_CATALOGUES] if matches_named(program.names) else []
    return catalogues or missing_names(program, incoming.survey, incoming.schemas)


def _added_field_errors(stone: Stone, found: Compilation, incoming: EventType) -> Iterator[str]:
    facts, dropped = load_facts(found.facts), stone.options.get("drop", ())
    if facts.matches:
        yield NO_CATALOGUES
    names = [schema_names(schema) for schema in incoming.schemas]
    for one in facts.adds:
        if one.name not in dropped and any(known.has(one.name) for known in names):
            yield f'{one.name} is a field of these alerts: call it otherwise, or drop = ["{one.name}"] too'


def _option_errors(stone: Stone, incoming: EventType) -> Iterator[str]:
    """Yield the errors of the options of *stone* with each other."""
    for key, why in OPTION_CHECKS.get(stone.kind, _template_errors)(stone, incoming):
        yield f"line {stone.lines.get(key, stone.lines.get('', 1))}: stone {stone.name}: {why}"


def _filter_errors(stone: Stone, _incoming: EventType) -> Iterator[tuple[str, str]]:
    if ("where" in stone.options) == ("python" in stone.options):
        yield "", "a filter needs where, a condition, or python, a function keep(alert)"


def _window_errors(stone: Stone, _incoming: EventType) -> Iterator[tuple[str, str]]:
    options = stone.options
    if options["function"] != "count" and "value" not in options:
        yield "function", f"a {options['function']} needs value: of which field"
    for key in ("by", "value"):
        if FIELD.fullmatch(options.get(key, "x")) is None:
            yield key, f"{key} = {options[key]!r} is no name of a field"
    if seconds(options["within"]) > DAY:
        yield "within", "within is longer than a day"
    if "above" in options and "below" in options:
        yield "below", "above and below: a window has one threshold"


def _join_errors(stone: Stone, _incoming: EventType) -> Iterator[tuple[str, str]]:
    if (by := stone.options.get("by", "object_id")) not in JOINED_BY:
        yield "by", f"by = {by!r} is none of {', '.join(JOINED_BY)}"
    if seconds(stone.options["within"]) > MOST_JOINED:
        yield "within", "within is longer than five days"


def _router_errors(stone: Stone, _incoming: EventType) -> Iterator[tuple[str, str]]:
    values = stone.options["values"]
    if not values or not all(isinstance(one, str | int) for one in values):
        yield "values", "values are texts or whole numbers, one at least"
    elif len(values) > MOST_VALUES:
        yield "values", f"values are {MOST_VALUES} at most: each is asked for in turn"
    elif ELSE in values or len({str(one) for one in values}) < len(values):
        yield "values", f"values are different, and none of them is {ELSE}"


def _transform_errors(stone: Stone, incoming: EventType) -> Iterator[tuple[str, str]]:
    """Yield fields that a transform names and no alert has in that shape."""
    codecs = [*map(Codec, incoming.schemas)]
    for key in ("drop", "means") if codecs else ():
        shape = Transform(**{key: tuple(stone.options.get(key, ()))})
        yield from ((key, why) for why in shape_mismatches(shape, codecs))
    if "python" not in stone.options and not transform_of(stone, incoming.survey):
        yield "", "it changes nothing: give drop, means, lite or python"


def _template_errors(stone: Stone, incoming: EventType) -> Iterator[tuple[str, str]]:
    names, survey = [schema_names(schema) for schema in incoming.schemas], incoming.survey
    for key in ("subject", "text", "parameters") if names else ():
        for name in TEMPLATE_FIELD.findall(str(stone.options.get(key, ""))):
            if name != "id" and not any(known.has(name) for known in names):
                yield key, f"alerts of {survey} have no field {name}: ${{{name}}} would stay as it is"


OPTION_CHECKS = {
    "filter": _filter_errors,
    "transform": _transform_errors,
    "router": _router_errors,
    "window": _window_errors,
    "join": _join_errors,
}


DAY = 86_400.0  # [s]
MOST_JOINED = 5 * DAY
"""Longest time of a join: Kafka keeps its state for seven days. [s]"""
MOST_VALUES = 100
"""Most ports of a router, beside the last."""
JOINED_BY = ("object_id", "id")


def _output_type(stone: Stone, incoming: EventType) -> EventType:
    """Return the type of the events that leave *stone*."""
    if stone.kind == "window":
        return EventType(WINDOWS)
    if stone.kind == "join":
        return EventType(JOINS)
    if stone.kind != "transform":
        return incoming
    transform = transform_of(stone, incoming.survey)
    schemas = (derived_schema(one, transform.drop, transform.fields()) for one in incoming.schemas)
    return EventType(incoming.kind, incoming.survey, tuple(schemas))
