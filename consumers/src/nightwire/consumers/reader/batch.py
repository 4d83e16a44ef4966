"""What a reader hands out at once, and what is needed to make it of records."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from confluent_kafka import Message

from nightwire.consumers.alert import Decoder, Deduplicator, FetchStamps
from nightwire.schemas import Columns, RegistryAwayError

Item = TypeVar("Item")


@dataclass
class Batch(Generic[Item]):
    """What is handed out at once, and the records that it was made of.

    Attributes:
        item: What is handed out; None where there was nothing but bad records and duplicates.
        messages: The records that *item* was made of: they are done when it is.
        count: How many alerts *item* holds.
        keys: Keys of these alerts, by which duplicates are known.
        bad: Records that hold no alert, and why.
        duplicates: How many alerts were left out, since they came before.
        filtered: How many a condition left out.
        faulted: How many it could not be judged on.
        waiting: Records that cannot be decoded yet.
        unavailable: Why they cannot.
    """

    messages: Sequence[Message]
    item: Item | None = None
    count: int = 0
    keys: Sequence[Hashable] = ()
    bad: list[tuple[Message, str]] = field(default_factory=list)
    duplicates: int = 0
    filtered: int = 0
    faulted: int = 0
    waiting: Sequence[Message] = ()
    unavailable: RegistryAwayError | None = None

    def cut(self, index: int, error: RegistryAwayError) -> None:
        """Leave the records from *index* on for later: the first one's schema cannot be had now."""
        self.messages, self.waiting = self.messages[:index], self.messages[index:]
        self.unavailable = error

    def pass_over(self) -> None:
        """Take the first record that waits for its schema as one that holds no alert."""
        self.messages, self.waiting = self.waiting[:1], self.waiting[1:]
        self.bad.append((self.messages[0], str(self.unavailable)))
        self.unavailable = None


class ColumnDecoder(Decoder, Protocol):
    """What we need of an `AlertDecoder`, where fields are read too."""

    def columns(self, values: Sequence[bytes], fields: Sequence[str]) -> Columns:
        """Return the fields of those values that can be read."""


@dataclass(frozen=True)
class DecodingContext:
    """What an open reader decodes with.

    Attributes:
        decoder: Decodes the records' values.
        survey: The survey of all records, where the reader was given one.
        deduplicator: Leaves out what came before.
        no_rows: Gives fields as columns of their types, without rows.
        stamps: Fetches the stamps of an alert that came without them.
    """

    decoder: ColumnDecoder
    survey: str | None
    deduplicator: Deduplicator
    no_rows: Callable[[Sequence[str]], Columns]
    stamps: FetchStamps | None = None


Unpack = Callable[[Sequence[Message]], Batch[Item]]
"""Makes a batch of records."""

UnpackFactory = Callable[[DecodingContext], Unpack[Item]]
"""Gives an `Unpack`, once the reader is open."""
