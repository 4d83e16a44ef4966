"""How a topic is kept, and the file in which an operator says otherwise."""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, get_args

from nightwire.schemas.errors import SchemaError

COMPRESSIONS = ("uncompressed", "lz4", "zstd", "snappy", "gzip")
FORMATS = ("wire", "container")
TOPICS_VARIABLE = "NIGHTWIRE_TOPICS"
"""Names the file of changes, for every process that makes topics or writes alerts."""


@dataclass(frozen=True)
class Retention:
    """How a topic is kept.

    Attributes:
        days: How long. [d]
        partition_bytes: Bytes of a partition after which the oldest leave; None = no limit.
        partitions: How many.
        compression: What the broker stores, whatever came: one of `COMPRESSIONS`; None = as it
            came.
        replication: Copies of each partition; None = the cluster's ``default.replication.factor``.
        format: ``wire``, or ``container``: alerts as Avro object containers with hop's headers.

    Raises:
        SchemaError: A value is none of these.
    """

    days: float = 7.0
    partition_bytes: int | None = None
    partitions: int = 4
    compression: str | None = None
    replication: int | None = None
    format: str = "wire"

    def __post_init__(self) -> None:
        for field in fields(self):
            self._check(field.name, field.type)
        if self.compression not in (None, *COMPRESSIONS):
            raise SchemaError(f"compression is one of {', '.join(COMPRESSIONS)}, not {self.compression!r}")
        if self.format not in FORMATS:
            raise SchemaError(f"format is wire or container, not {self.format!r}")

    def _check(self, name: str, kind: Any) -> None:
        value = getattr(self, name)
        kinds = get_args(kind) or (kind,)
        if isinstance(value, bool) or not isinstance(value, (*kinds, *((int,) if float in kinds else ()))):
            raise SchemaError(f"{name} is {value!r}: not {kind}")
        if isinstance(value, int | float) and value <= 0:
            raise SchemaError(f"{name} is {value}: must be above zero")


Changes = Mapping[str, Mapping[str, Any]]
"""By topic: settings that differ from the default."""


def parse_changes(text: str) -> dict[str, dict[str, Any]]:
    """Return the changes that a TOML file holds: tables ``[survey.NAME]`` and ``[topic."NAME"]``.

    Raises:
        SchemaError: It is no TOML, or holds something else; the message names it.
    """
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SchemaError(f"not TOML: {error}") from error
    unknown = sorted(set(content) - {"survey", "topic"})
    if unknown:
        raise SchemaError(f"[{unknown[0]}]: write [survey.NAME] or [topic.NAME] tables")
    named = {f"alerts.{name}": table for name, table in content.get("survey", {}).items()}
    both = sorted(set(named) & set(content.get("topic", {})))
    if both:
        raise SchemaError(f"{both[0]} is there twice: as a survey and as a topic")
    found = {topic: dict(table) for topic, table in (named | content.get("topic", {})).items()}
    for topic, table in found.items():
        with_changes(Retention(), table, topic)
    return found


def with_changes(kept: Retention, table: Mapping[str, Any], topic: str) -> Retention:
    """Return *kept* with what *table* says of *topic*.

    Raises:
        SchemaError: It says something that is no setting.
    """
    known = [field.name for field in fields(Retention)]
    unknown = sorted(set(table) - set(known))
    if unknown:
        raise SchemaError(f"{topic}: no setting {unknown[0]!r}; there are: {', '.join(known)}")
    try:
        return replace(kept, **table)
    except SchemaError as error:
        raise SchemaError(f"{topic}: {error}") from error


def read_changes(path: Path) -> dict[str, dict[str, Any]]:
    """Return the changes in the file *path*.

    Raises:
        SchemaError: It cannot be read.
    """
    try:
        return parse_changes(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, SchemaError) as error:
        raise SchemaError(f"{path}: {error}") from error


@cache
def configured_changes() -> Changes:
    """Return the changes in the file that ``NIGHTWIRE_TOPICS`` names; none where it names none.

    Raises:
        SchemaError: The file cannot be read.
    """
    named = os.environ.get(TOPICS_VARIABLE)
    return read_changes(Path(named)) if named else {}
