"""Alerts from files: Avro object containers, and messages in Confluent wire format."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from nightwire.schemas import Codec, DecodeError, RegistryAwayError, SchemaError, Survey, UnknownSchemaError
from nightwire.schemas.wire import ContainerRecord, is_container, read_container, unframe

SUFFIXES = (".avro", ".cwf")
"""Suffixes of files that are read in a folder; a file that is named is always read."""


@dataclass(frozen=True)
class Found:
    """One alert of a file.

    Attributes:
        alert: Decoded.
        body: Its Avro body, as it lay there.
        key: Its Kafka key.
        schema: Its writer's schema; None where it has an id.
        schema_id: Its schema's id; None where it came with its schema.
        message: The whole file, where it holds this alert alone.
    """

    alert: Mapping[str, Any]
    body: bytes
    key: bytes
    schema: Mapping[str, Any] | None
    schema_id: int | None
    message: bytes | None


@dataclass(frozen=True)
class Refused:
    """A file, or the rest of one, that cannot be read: its path, the reason, and its bytes."""

    path: Path
    reason: str
    content: bytes


class Codecs(Protocol):
    """What reading wire files needs of a ``SchemaRegistry``."""

    def codec(self, schema_id: int) -> Codec:
        """Return the codec of that schema."""


def find(paths: Iterable[Path]) -> tuple[list[Path], list[Path]]:
    """Return the files to read in *paths* and in folders there, and the folders' other files."""
    wanted: list[Path] = []
    left_aside: list[Path] = []
    for path in paths:
        if not path.is_dir():
            wanted.append(path)
            continue
        for inner in sorted(item for item in path.rglob("*") if item.is_file()):
            (wanted if inner.suffix in SUFFIXES else left_aside).append(inner)
    return wanted, left_aside


def read(path: Path, survey: Survey, codecs: Codecs) -> Iterator[Found | Refused]:
    """Yield the alerts in the file *path*; at its end what is wrong with it, if anything.

    Args:
        path: A container, or one message in wire format.
        survey: The survey of the alerts.
        codecs: Gives the codec of a schema id; a ``SchemaRegistry``.

    Raises:
        RegistryAwayError: The registry has to be asked, and does not answer.
    """
    content = b""
    try:
        content = path.read_bytes()
        if is_container(content):
            yield from _in_container(path, content, survey)
        elif content.startswith(b"\0"):
            yield _in_wire_format(content, survey, codecs)
        else:
            raise DecodeError(f"neither an Avro container nor in wire format: starts with {content[:4]!r}")
    except RegistryAwayError:
        raise  # the file is good, and can be read later
    except UnknownSchemaError as error:
        yield Refused(path, f"{error}; name the schema's file or folder with --schema", content)
    except (SchemaError, OSError) as error:
        yield Refused(path, str(error), content)


def _in_container(path: Path, content: bytes, survey: Survey) -> Iterator[Found | Refused]:
    """Yield the alerts of a container; those ahead of a fault come before the error."""
    records = read_container(content)
    first = next(records, None)
    if first is None:
        return
    try:
        second = next(records, None)
    except SchemaError:
        yield _found(path, first, survey)
        raise
    yield _found(path, first, survey, content if second is None else None)
    if second is not None:
        yield _found(path, second, survey)
    for one in records:
        yield _found(path, one, survey)


def _found(path: Path, one: ContainerRecord, survey: Survey, message: bytes | None = None) -> Found | Refused:
    """Return a record as an alert; refused where it is not an alert of this survey."""
    try:
        return Found(one.record, one.body, _key(survey, one.record), one.schema, None, message)
    except DecodeError as error:
        return Refused(path, str(error), message or one.body)


def _in_wire_format(content: bytes, survey: Survey, codecs: Codecs) -> Found:
    schema_id, body = unframe(content)
    alert = codecs.codec(schema_id).decode(body)
    return Found(alert, body, _key(survey, alert), None, schema_id, content)


def _key(survey: Survey, alert: Mapping[str, Any]) -> bytes:
    """Return the alert's key.

    Raises:
        DecodeError: It has no id where this survey's alerts have theirs.
    """
    survey.alert_id(alert)
    return survey.key(alert)
