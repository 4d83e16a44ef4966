"""Objections to a transform, each with the name of its field, before it goes live."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nightwire.filters.model.transform import DECLARED, AddedField, Transform
from nightwire.schemas import Codec, SchemaError, SchemaRegistry, UnknownSchemaError, survey, surveys
from nightwire.schemas.topics import alerts

Request = Mapping[str, Any]
"""A record of `requests.<owner>`."""


def is_transform(request: Request) -> bool:
    """Return whether *request* asks for a transform."""
    return bool(request["drop"] or request["means"] or request["transform"])


def transform_objections(request: Request) -> list[str]:
    """Return the objections to a transform that its request alone shows.  Pure."""
    if not is_transform(request):
        return []
    if not request["output"]:
        return ["a transform writes to broker.<broker>.<stream>, never to filter.…: name its --output"]
    if request["choice"] == "best" and request["cap"]:
        return ["a transform sends at once, and holds nothing for --choice best"]
    if request["transform"] and request["language"] != "python":
        return ["what is added is computed in python: submit the condition as a function, too"]
    return [*_lost_ids(request)]


def schema_mismatches(request: Request, adds: Sequence[AddedField], registry: SchemaRegistry) -> list[str]:
    """Return the parts of a transform that do not fit the known schemas of its surveys' alerts.

    Args:
        request: The submission of a transform, or of any other filter.
        adds: The fields that its source declares to add.
        registry: Knows the schemas.
    """
    if not is_transform(request):
        return []
    codecs = [*_newest(registry, surveys_of(request))]
    shape = Transform(tuple(request["drop"]), tuple(request["means"]), tuple(adds))
    return [*shape_mismatches(shape, codecs)] if codecs else []


def shape_mismatches(shape: Transform, codecs: Sequence[Codec]) -> Iterator[str]:
    """Yield the parts of a transform that fit none of the schemas of *codecs*.  Pure."""
    for path in (*shape.drop, *shape.means):
        if not any(codec.has(path) for codec in codecs):
            yield f"no field {path} in these alerts"
    for path in shape.means:
        if any(codec.has(path) for codec in codecs) and not any(_is_numbers(codec, path) for codec in codecs):
            yield f"{path} is no number in an array of records, so it has no mean"
    for one in shape.adds:
        if one.name not in shape.drop and any(codec.has(one.name) for codec in codecs):
            yield f"{DECLARED}: {one.name} is a field of these alerts: take another name, or --drop it"


def _lost_ids(request: Request) -> Iterator[str]:
    ids = {path for name in surveys_of(request) for path in survey(name).description.ids.alert}
    for dropped in request["drop"]:
        if any(path == dropped or path.startswith(f"{dropped}.") for path in ids):
            yield f"{dropped} tells which alert it is: it cannot be dropped"


def surveys_of(request: Request) -> list[str]:
    """Return the surveys whose alerts a submitted filter judges."""
    return surveys() if request["survey"] == "*" else [request["survey"]]


def _newest(known: SchemaRegistry, names: Sequence[str]) -> Iterator[Codec]:
    for name in names:
        try:
            yield Codec(known.latest(f"{alerts(name)}-value")[2])
        except UnknownSchemaError:
            continue  # none came yet, or the registry is away: nothing to compare with


def _is_numbers(codec: Codec, path: str) -> bool:
    import pyarrow as pa  # takes 0.1 s to import

    try:
        kind = codec.columns([], [path]).schema.field(path).type
    except SchemaError:
        return False
    inside = kind.value_type if pa.types.is_list(kind) else pa.null()
    return bool(pa.types.is_floating(inside) or pa.types.is_integer(inside))
