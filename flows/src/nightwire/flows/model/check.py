"""A flow held against its site: topics that there are, schemas of their alerts."""

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
"""The known schemas of a survey's alerts, the newest first."""

NO_CATALOGUES = "a flow knows no catalogues: submit that as a filter, and let the flow read its topic"
FIELD = re.compile(r"[\w.]+")
TEMPLATED = re.compile(r"(?<!\$)\$\{([\w.]+)\}")
"""A field in a text."""
LINE = re.compile(r"^line (\d+)(?:, column (\d+))?: ")
MADE = {(WINDOWS, ""), (JOINS, "")}
"""What may end in one place, as it says itself what it is."""
CONTROL = {*COMPACTED, DEAD_LETTERS}
CONTROL_KINDS = {"requests", "answers", "seen", "multicast", "flow", "flow-state"}
"""Topics that are no flow's to write."""


@dataclass(frozen=True)
class EventType:
    """What goes along an edge.

    Attributes:
        kind: What events are, as `Kind.looks` has it.
        survey: Whose alerts they are, or are about.
        schemas: Those that they may have; none where none is known.
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
    """Return the path, or the canonical name, of the field that *name* is in a condition."""
    return next(iter(compile_sql(f"{name} IS NULL", survey).names))


def transform_of(stone: Stone, survey: str) -> Transform:
    """Return what a stone makes of alerts of *survey*.

    Raises:
        FilterError: Its function is none.
    """
    usual = light_form(survey) if stone.options.get("lite") else {"drop": [], "means": []}
    drop, means = ((*stone.options.get(name, ()), *usual[name]) for name in ("drop", "means"))
    source = stone.options.get("python")
    adds = load_facts(compile_transform(source, survey).facts).adds if source is not None else ()
    return Transform(tuple(drop), tuple(means), adds)


def check(
    flow: Flow, topics: Collection[str], schemas: Schemas, others: Collection[Flow] = ()
) -> dict[Edge, EventType]:
    """Return what goes along each edge.

    Args:
        flow: A flow.
        topics: Names of the topics that there are.
        schemas: Those of a survey's alerts, as far as they are known.
        others: The flows beside which it runs.

    Raises:
        FlowError: Something does not fit; says where and why.
    """
    wrong = [*_unknown_topics(flow, topics), *_cycles(flow, others)]
    types: dict[Edge, EventType] = {}
    for source in flow.sources.values():
        if source.survey and source.survey not in surveys():
            near = meant(source.survey, surveys())
            line = source.line("survey" if "survey" in source.lines else "topic")
            wrong.append(f"line {line}: nobody has described survey {source.survey!r}{near}")
        else:
            types[Edge(source.name)] = _given(source, schemas)
    for stone in flow.stones.values():
        given = [types[edge] for edge in stone.inputs if edge in types]
        misfits = [*_misfits(stone, given)]
        wrong += misfits
        made = _outcome(stone, given[0]) if given and not misfits else None
        types |= {Edge(stone.name, port): made for port in stone.ports if made}
    if wrong:
        raise FlowError(wrong)
    return types


def _given(source: Source, schemas: Schemas) -> EventType:
    """Return what a source gives."""
    if source.topic == VOEVENTS_TOPIC:
        return EventType(VOEVENTS)
    if source.topic.startswith("returns."):
        return EventType(RETURNS, source.survey)
    return EventType(ALERTS, source.survey, (*schemas(source.survey),) if source.survey else ())


def _unknown_topics(flow: Flow, topics: Collection[str]) -> Iterator[str]:
    for source in flow.sources.values():
        if source.topic not in topics:
            near = meant(source.topic, topics) or "; `nightwire topics` lists those that there are"
            yield f"line {source.line('topic')}: no topic {source.topic}{near}"
    for stone in flow.stones.values():
        topic = stone.options.get("topic", "")
        if stone.kind not in {"topic", "bridge"}:
            continue
        where = f"line {stone.lines.get('topic', 1)}:"
        if topic in CONTROL or topic.split(".")[0] in CONTROL_KINDS or topic.startswith("_"):
            yield f"{where} {topic} is no flow's to write"
        elif stone.kind == "topic" and topic not in topics and not _can_be_made(topic):
            yield f"{where} no topic {topic}{meant(topic, topics)}; make it, or write broker.NAME.STREAM"


def _cycles(flow: Flow, others: Collection[Flow]) -> Iterator[str]:
    """Yield how what *flow* writes comes back to it."""
    for stone in flow.stones.values():
        if stone.kind == "topic" and (way := _way_back(stone.options["topic"], flow, others)):
            by = f", by way of {' → '.join(way)}" if len(way) > 1 else ""
            yield f"line {stone.lines.get('topic', 1)}: a cycle: the flow reads {way[-1]}{by}"


def _way_back(topic: str, flow: Flow, others: Collection[Flow]) -> list[str]:
    """Return the flows and topics from *topic* to one that *flow* reads; empty: there is no way."""
    ways, seen = deque([[topic]]), {topic}
    while ways:
        way = ways.popleft()
        if way[-1] in flow.reads:
            return way
        for other in others:
            if other.name != flow.name and way[-1] in other.reads:
                ways.extend([*way, other.name, written] for written in sorted(other.writes - seen))
                seen |= other.writes
    return []


def _can_be_made(topic: str) -> bool:
    try:
        return topic.startswith("broker.") and settings(topic).name == topic
    except (NameError_, SchemaError):
        return False


def _misfits(stone: Stone, given: Sequence[EventType]) -> Iterator[str]:
    """Yield why what comes to *stone* does not fit."""
    line, looks = stone.lines.get("from", 1), stone.about.looks
    if bad := [one for one in given if looks and (one.kind not in looks or not _is_known(one))]:
        why = ' of a survey: name it at the source as survey = "…"'
        why = why if bad[0].kind in looks else f", not {bad[0].kind}"
        yield f"line {line}: stone {stone.name}: a {stone.kind} wants {' or '.join(sorted(looks))}{why}"
        return
    if stone.kind == "join" and not any(one.kind == ALERTS for one in given):
        yield f"line {line}: stone {stone.name}: a join wants alerts, and returns beside them or none"
    kinds = {(one.kind if stone.kind != "join" else ALERTS, one.survey) for one in given}
    if len(kinds) > 1 and not (stone.about.terminal and kinds <= MADE):
        names = ", ".join(sorted(f"{kind} of {survey or 'no survey'}" for kind, survey in kinds))
        yield f"line {line}: stone {stone.name}: {names} do not go together"
        return
    for one in given[:1]:
        yield from _wrong_options(stone, one)
    alerts = [one for one in given if one.kind == ALERTS and one.survey]
    for key, text in _conditions(stone):
        for one in alerts:
            yield from (_moved(why, stone, key) for why in _faults(text, one))
    for one in alerts if "python" in stone.options else ():
        yield from (_moved(why, stone, "python") for why in _function_faults(stone, one))


def _moved(why: str, stone: Stone, key: str) -> str:
    """Return *why*, said of the text of *key* with its own line or none, with that of the file."""
    begin = stone.lines.get(f"{key}{TEXT}", stone.lines.get(key, stone.lines.get("from", 1)))
    found = LINE.match(why)
    number, column = (int(found[1]), found[2]) if found else (1, None)
    place = f"character {column}: " if column else ""
    return f"line {begin + number - 1}: {place}{why[found.end() :] if found else why}"


def _is_known(given: EventType) -> bool:
    return given.survey != "" or given.kind == VOEVENTS


def _conditions(stone: Stone) -> Iterator[tuple[str, str]]:
    """Yield the keys of a stone that ask for fields, and an SQL condition that asks alike."""
    if stone.kind == "filter" and "where" in stone.options:
        yield "where", stone.options["where"]
    elif stone.kind == "router":
        yield from (("by", text) for text in [*router_conditions(stone).values()][:1])
    elif stone.kind == "window":
        yield from (
            (key, f"{stone.options[key]} IS NOT NULL") for key in ("by", "value") if key in stone.options
        )


def _faults(text: str, given: EventType) -> list[str]:
    try:
        return _misfits_of(compile_sql(text, given.survey), given)
    except FilterError as error:
        return [str(one) for one in error.reasons]


def _function_faults(stone: Stone, given: EventType) -> list[str]:
    """Return why the function of *stone* does not fit what comes, with its own lines."""
    source = stone.options["python"]
    try:
        found = (compile_filter if stone.kind == "filter" else compile_transform)(source, given.survey)
    except FilterError as error:
        return [str(one) for one in error.reasons]
    if found.program is not None and stone.kind == "filter":
        return _misfits_of(found.program, given)
    unknown = missing_names(found.asked, given.survey, given.schemas)
    return [*unknown, *_misfits_of_added(stone, found, given)]


def _misfits_of(program: Program, given: EventType) -> list[str]:
    catalogues = [NO_CATALOGUES] if matches_named(program.names) else []
    return catalogues or missing_names(program, given.survey, given.schemas)


def _misfits_of_added(stone: Stone, found: Compilation, given: EventType) -> Iterator[str]:
    facts, dropped = load_facts(found.facts), stone.options.get("drop", ())
    if facts.matches:
        yield NO_CATALOGUES
    names = [schema_names(schema) for schema in given.schemas]
    for one in facts.adds:
        if one.name not in dropped and any(known.has(one.name) for known in names):
            yield f'{one.name} is a field of these alerts: call it otherwise, or drop = ["{one.name}"] too'


def _wrong_options(stone: Stone, given: EventType) -> Iterator[str]:
    """Yield what is wrong in the options of *stone*, taken together."""
    found = WRONG.get(stone.kind, _unknown_in_texts)
    for key, why in found(stone, given):
        yield f"line {stone.lines.get(key, stone.lines.get('', 1))}: stone {stone.name}: {why}"


def _wrong_filter(stone: Stone, _given: EventType) -> Iterator[tuple[str, str]]:
    if ("where" in stone.options) == ("python" in stone.options):
        yield "", "a filter needs where, a condition, or python, a function keep(alert)"


def _wrong_window(stone: Stone, _given: EventType) -> Iterator[tuple[str, str]]:
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


def _wrong_join(stone: Stone, _given: EventType) -> Iterator[tuple[str, str]]:
    if (by := stone.options.get("by", "object_id")) not in JOINED_BY:
        yield "by", f"by = {by!r} is none of {', '.join(JOINED_BY)}"
    if seconds(stone.options["within"]) > MOST_JOINED:
        yield "within", "within is longer than five days"


def _wrong_values(stone: Stone, _given: EventType) -> Iterator[tuple[str, str]]:
    values = stone.options["values"]
    if not values or not all(isinstance(one, str | int) for one in values):
        yield "values", "values are texts or whole numbers, one at least"
    elif len(values) > MOST_VALUES:
        yield "values", f"values are {MOST_VALUES} at most: each is asked for in turn"
    elif ELSE in values or len({str(one) for one in values}) < len(values):
        yield "values", f"values are different, and none of them is {ELSE}"


def _unknown_fields(stone: Stone, given: EventType) -> Iterator[tuple[str, str]]:
    """Yield the fields that a transform names and no alert has, or not as it takes them."""
    codecs = [*map(Codec, given.schemas)]
    for key in ("drop", "means") if codecs else ():
        shape = Transform(**{key: tuple(stone.options.get(key, ()))})
        yield from ((key, why) for why in shape_mismatches(shape, codecs))
    if "python" not in stone.options and not transform_of(stone, given.survey):
        yield "", "it changes nothing: give drop, means, lite or python"


def _unknown_in_texts(stone: Stone, given: EventType) -> Iterator[tuple[str, str]]:
    names = [schema_names(schema) for schema in given.schemas]
    for key in ("subject", "text") if names else ():
        for name in TEMPLATED.findall(stone.options.get(key, "")):
            if name != "id" and not any(known.has(name) for known in names):
                yield key, f"alerts of {given.survey} have no field {name}: ${{{name}}} would stay as it is"


WRONG = {
    "filter": _wrong_filter,
    "transform": _unknown_fields,
    "router": _wrong_values,
    "window": _wrong_window,
    "join": _wrong_join,
}


DAY = 86_400.0  # [s]
MOST_JOINED = 5 * DAY
"""Longest time of a join: what it holds is kept for seven days. [s]"""
MOST_VALUES = 100
"""Most ways out of a router, beside the last."""
JOINED_BY = ("object_id", "id")


def _outcome(stone: Stone, given: EventType) -> EventType:
    """Return what leaves *stone*."""
    if stone.kind == "window":
        return EventType(WINDOWS)
    if stone.kind == "join":
        return EventType(JOINS)
    if stone.kind != "transform":
        return given
    transform = transform_of(stone, given.survey)
    made = (derived_schema(one, transform.drop, transform.fields()) for one in given.schemas)
    return EventType(given.kind, given.survey, tuple(made))
