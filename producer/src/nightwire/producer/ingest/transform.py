"""What becomes of one record: its alerts get a key, a visit and headers, their bodies stay.

Only the ids and the visit of an alert are decoded, which costs a fraction of the whole.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from nightwire.core.kafka import Headers
from nightwire.producer.ingest.items import EMPTY, Item, Output
from nightwire.producer.visits.visit_topic import VISIT_HEADER
from nightwire.schemas import Codec, DecodeError, Survey
from nightwire.schemas.wire import ContainerRecord, frame, is_container, read_container, unframe


def wanted_fields(survey: Survey, codec: Codec) -> list[str]:
    """Return those paths to an alert's ids and visit that the schema of *codec* has."""
    ids = survey.description.ids
    paths = [*ids.alert, *ids.object, *ids.solar_system_object, *ids.visit]
    return [path for path in dict.fromkeys(paths) if has_path(codec.schema, path)]


def has_path(schema: Mapping[str, Any], path: str) -> bool:
    """Whether records of *schema* have the dotted *path*."""
    named = {name: one for one in _records(schema) for name in _names(one)}
    return _reaches(schema, path.split("."), named)


def _reaches(kind: Any, steps: Sequence[str], named: Mapping[str, Any]) -> bool:
    if not steps:
        return True
    for branch in kind if isinstance(kind, list) else [kind]:
        record = named.get(branch) if isinstance(branch, str) else branch
        if isinstance(record, Mapping) and record.get("type") == "record":
            fields = {field["name"]: field["type"] for field in record["fields"]}
            if steps[0] in fields and _reaches(fields[steps[0]], steps[1:], named):
                return True
    return False


def _records(kind: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(kind, list):
        for branch in kind:
            yield from _records(branch)
    elif isinstance(kind, Mapping):
        if kind.get("type") == "record":
            yield kind
            for field in kind["fields"]:
                yield from _records(field["type"])
        for part in ("type", "items", "values"):
            if isinstance(kind.get(part), list | Mapping):
                yield from _records(kind[part])


def _names(record: Mapping[str, Any]) -> list[str]:
    """Return the names by which a schema may refer to *record*: with its namespace and without."""
    short = str(record["name"]).rpartition(".")[2]
    space = record.get("namespace")
    return [str(record["name"]), short, *([f"{space}.{short}"] if space else [])]


TIME_KNOWN = 1
"""Least kind of a record's timestamp that says there is one."""

RESERVED_HEADERS = frozenset(
    {
        VISIT_HEADER,
        "replay",
        "spooled",
        "topic",
        "partition",
        "offset",
        "survey",
        "alert",
        "filter",
        "version",
        "rank",
    }
)
"""Headers with a meaning here; the survey's own of these names become ``survey-<name>``."""


class Record(Protocol):
    """What we need of a ``confluent_kafka.Message``."""

    def topic(self) -> str | None:
        """Return its topic."""

    def partition(self) -> int | None:
        """Return its partition."""

    def offset(self) -> int | None:
        """Return its offset."""

    def key(self) -> Any:
        """Return its key."""

    def value(self) -> Any:
        """Return its value."""

    def headers(self) -> Any:
        """Return its headers."""

    def timestamp(self) -> tuple[int, int]:
        """Return the kind of its time, and its time [ms since 1970, UTC]."""
        ...


class Schemas(Protocol):
    """What we need of a `nightwire.producer.ingest.schemas.Schemas`."""

    def codec(self, schema_id: int) -> Codec:
        """Return the codec of an id."""
        ...

    def id(self, schema: Mapping[str, Any]) -> int:
        """Return the id of a schema."""
        ...


class Transformer:
    """Makes records of ours from the source's; an alert's Avro body stays as it is.

    Args:
        survey: Knows where an alert keeps its ids.
        schemas: Knows the alerts' schemas.
        source: Name of the source in headers.
        as_is: Keep whole messages, rather than Confluent's wire format.
    """

    def __init__(self, survey: Survey, schemas: Schemas, source: str, *, as_is: bool = False) -> None:
        self._survey, self._schemas, self._source, self._as_is = survey, schemas, source, as_is
        self._fields: dict[int, list[str]] = {}

    def item(self, record: Record) -> Item:
        """Return *record* as an item, with the alerts in it or the reason why there are none.

        Raises:
            UnknownSchemaError: No registry has its schema; RegistryAwayError, where one is away.
            SchemaError: Our registry refuses its schema.
        """
        value, found = record.value(), item_of(record)
        if value is None:
            return found.as_dead_letter("the record has no value: it deletes its key")
        try:
            outputs = self._outputs(value, headers(record, self._source, found.headers))
        except DecodeError as error:
            return found.as_dead_letter(str(error))
        return replace(found, outputs=outputs, rejected=None if outputs else EMPTY)

    def _outputs(self, value: bytes, more: Headers) -> Sequence[Output]:
        if not is_container(value):
            schema_id, body = unframe(value)
            return [self._output(self._ids(schema_id, body), value, more)]
        records = list(read_container(value))
        if self._as_is and len(records) == 1:
            return [self._output(records[0].record, value, more)]
        if self._as_is:
            raise DecodeError(f"a container of {len(records)} alerts is no message: leave --format as-is out")
        return [self._output(one.record, self._framed(one), more) for one in records]

    def _ids(self, schema_id: int, body: bytes) -> Mapping[str, Any]:
        """Return the fields of an alert that make its key and its visit."""
        codec = self._schemas.codec(schema_id)
        if schema_id not in self._fields:
            self._fields[schema_id] = wanted_fields(self._survey, codec)
        return codec.decode(body, self._fields[schema_id])

    def _framed(self, one: ContainerRecord) -> bytes:
        return frame(self._schemas.id(one.schema), one.body)

    def _output(self, alert: Mapping[str, Any], value: bytes, more: Headers) -> Output:
        try:
            self._survey.alert_id(alert)
            key, visit = self._survey.key(alert), self._survey.visit(alert)
        except (ValueError, TypeError) as error:  # an id of a wrong type
            raise DecodeError(f"no alert of survey {self._survey.name}: {error}") from error
        visit_header = [] if visit is None else [(VISIT_HEADER, str(visit).encode())]
        return Output(key, value, [*visit_header, *more], visit)


def item_of(record: Record) -> Item:
    """Return *record* as an item without outputs."""
    source_partition, offset = (str(record.topic()), record.partition() or 0), record.offset() or 0
    value, key = record.value() or b"", record.key()
    return Item(source_partition, offset, offset, value=value, key=key, headers=own_headers(record))


def own_headers(record: Record) -> list[tuple[str, bytes]]:
    """Return the headers that *record* came with."""
    return [(name, _bytes(value)) for name, value in record.headers() or () if value is not None]


def headers(record: Record, source: str, own: Headers) -> list[tuple[str, bytes]]:
    """Return headers with the position of *record* at the source, then its *own* headers."""
    kind, time = record.timestamp()
    from_ = {
        "source-cluster": source,
        "source-topic": record.topic(),
        "source-partition": record.partition(),
        "source-offset": record.offset(),
    }
    if kind >= TIME_KNOWN:
        from_["source-time"] = time
    renamed = [
        (f"survey-{name}" if name in RESERVED_HEADERS or name in from_ else name, value)
        for name, value in own
    ]
    return [*((name, str(value).encode()) for name, value in from_.items()), *renamed]


def schema_of(record: Record) -> str:
    """Return a name for the schema of *record*: its id, or that it came in a container."""
    value = record.value() or b""
    return "in a container" if is_container(value) else value[1:5].hex()


def _bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)
