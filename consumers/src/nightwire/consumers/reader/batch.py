"""What a reader hands out at once, and what it takes to make one."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from confluent_kafka import Message

from nightwire.consumers.alert.deduplication import Deduplicator
from nightwire.schemas import Decoded, RegistryAwayError

Item = TypeVar("Item")


@dataclass
class Batch(Generic[Item]):
    """What is handed out at once, and what it was made of.

    Attributes:
        item: What is handed out; None where there was nothing but bad records and duplicates.
        messages: The records it was made of: done, when it is.
        count: How many alerts it holds.
        keys: What to remember of these, against duplicates.
        bad: Records that hold no alert, and why.
        duplicates: Alerts left out, since they came before.
        left: Records that cannot be read yet.
        away: Why they cannot.
    """

    messages: Sequence[Message]
    item: Item | None = None
    count: int = 0
    keys: Sequence[Hashable] = ()
    bad: list[tuple[Message, str]] = field(default_factory=list)
    duplicates: int = 0
    left: Sequence[Message] = ()
    away: RegistryAwayError | None = None


class Columns(Protocol):
    """What we need of the columns of some values: rows of those that can be read, faults of others."""

    @property
    def batch(self) -> Any:
        """A `pyarrow.RecordBatch` with a row for each value that could be read, in order."""

    @property
    def rows(self) -> Sequence[int]:
        """Which value each row is of."""

    @property
    def faults(self) -> Mapping[int, Exception]:
        """Why the others could not be read."""


class ColumnDecoder(Protocol):
    """What we need of an `AlertDecoder`."""

    def decode(self, value: bytes) -> Decoded:
        """Return the alert, its Avro body and its schema."""

    def columns(self, values: Sequence[bytes], fields: Sequence[str]) -> Columns:
        """Return the fields of those values that can be read."""


@dataclass(frozen=True)
class Tools:
    """What an open reader decodes with.

    Attributes:
        decoder: Takes values apart.
        survey: The survey of all records, where the reader was told.
        fresh: Leaves out what came before.
    """

    decoder: ColumnDecoder
    survey: str | None
    fresh: Deduplicator


Unpack = Callable[[Sequence[Message]], Batch[Item]]
"""Makes a parcel of records."""

UnpackFactory = Callable[[Tools], Unpack[Item]]
"""Gives an `Unpack`, once the reader is open."""
