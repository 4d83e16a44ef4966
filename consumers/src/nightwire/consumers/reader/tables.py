"""Columns of alerts as a table: with columns of where they lay, as Arrow, pandas or polars."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, get_args

import pyarrow as pa
from confluent_kafka import Message

from nightwire.consumers.alert import survey_of
from nightwire.core.kafka import headers_of
from nightwire.core.runtime import install_command

Kind = Literal["arrow", "pandas", "polars"]


def survey_name(message: Message, given: str | None) -> str | None:
    """Return the survey of *message*: as *given*, else by its header or topic."""
    return given or survey_of(str(message.topic()), headers_of(message))


def _topics(messages: Sequence[Message], _survey: str | None) -> Any:
    return pa.array([str(one.topic()) for one in messages], pa.string())


def _partitions(messages: Sequence[Message], _survey: str | None) -> Any:
    return pa.array([one.partition() for one in messages], pa.int32())


def _offsets(messages: Sequence[Message], _survey: str | None) -> Any:
    return pa.array([one.offset() for one in messages], pa.int64())


def _timestamps(messages: Sequence[Message], _survey: str | None) -> Any:
    return pa.array([one.timestamp()[1] for one in messages], pa.timestamp("ms", tz="UTC"))


def _keys(messages: Sequence[Message], _survey: str | None) -> Any:
    return pa.array([one.key() for one in messages], pa.binary())


def _surveys(messages: Sequence[Message], survey: str | None) -> Any:
    return pa.array([survey_name(one, survey) for one in messages], pa.string())


METADATA: Mapping[str, Callable[[Sequence[Message], str | None], Any]] = {
    "topic": _topics,
    "partition": _partitions,
    "offset": _offsets,
    "timestamp": _timestamps,
    "key": _keys,
    "survey": _surveys,
}
"""Columns of where a record lay."""


def check_table(fields: Sequence[str], metadata: Sequence[str], to: str) -> None:
    """Check what a table is to hold, before anything is read.

    Raises:
        ValueError: No field, one twice, or metadata or a kind of table that do not exist.
        ModuleNotFoundError: pandas or polars is not installed.
    """
    names = [*fields, *metadata]
    faults = [] if fields else ["no field to read"]
    faults += [f"{name} is asked for twice" for name in dict.fromkeys(names) if names.count(name) > 1]
    faults += [
        f"no metadata {name!r}; there are: {', '.join(METADATA)}" for name in metadata if name not in METADATA
    ]
    if to not in get_args(Kind):
        faults.append(f"to={to!r} is none of {', '.join(get_args(Kind))}")
    if faults:
        raise ValueError("; ".join(faults))
    converter(to)


def with_metadata(
    batch: Any, messages: Sequence[Message], metadata: Sequence[str], survey: str | None
) -> Any:
    """Return *batch* as a table, with a column for each of *metadata* before the fields.

    Args:
        batch: One row for each of *messages*.
        messages: The records of the rows.
        metadata: Names of `METADATA`.
        survey: The survey of all records, where the reader was given one.
    """
    extra = [METADATA[name](messages, survey) for name in metadata]
    return pa.Table.from_arrays([*extra, *batch.columns], names=[*metadata, *batch.schema.names])


def converter(to: str) -> Callable[[Any], Any]:
    """Return what makes an Arrow table the kind of table that was asked for.

    Raises:
        ModuleNotFoundError: Its package is not installed; the message says how to get it.
    """
    if to == "arrow":
        return lambda table: table
    try:
        return _pandas() if to == "pandas" else _polars()
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"tables as {to} need the package {error.name}: {install_command('tables')}", name=error.name
        ) from error


def _pandas() -> Callable[[Any], Any]:
    import pandas  # noqa: F401  (Arrow's own message does not say how to get it)

    return lambda table: table.to_pandas()


def _polars() -> Callable[[Any], Any]:
    import polars

    return polars.from_arrow
