"""Which records librdkafka has and Kafka has not acknowledged, and which of them are spooled."""

from collections.abc import Sequence
from itertools import count

from nightwire.core.kafka import Record


class InFlight:
    """Unacknowledged records, each by a token.  Pure; not for several threads at once."""

    def __init__(self) -> None:
        self._tokens = count()
        self._direct: dict[int, tuple[Record, int | None]] = {}
        self._spooled: dict[int, tuple[int, int]] = {}

    def add(self, record: Record, visit: int | None) -> int:
        """Return the token of a *record* outside the spool, which may be an alert of *visit*."""
        token = next(self._tokens)
        self._direct[token] = record, visit
        return token

    def add_spooled(self, number: int, size: int) -> int:
        """Return the token of the spool's record *number*, of *size* bytes."""
        token = next(self._tokens)
        self._spooled[token] = number, size
        return token

    @property
    def direct(self) -> Sequence[tuple[Record, int | None]]:
        """The records that are not in the spool, in their order, each with its visit."""
        return list(self._direct.values())

    @property
    def has_spooled(self) -> bool:
        """Whether some of the records are in the spool."""
        return bool(self._spooled)

    @property
    def spooled_bytes(self) -> int:
        """Size of the records that are in the spool. [byte]"""
        return sum(size for _number, size in self._spooled.values())

    def spooled_as(self, numbers: Sequence[int]) -> None:
        """Note that the `direct` records are in the spool now, under *numbers*."""
        for number, (token, (record, _visit)) in zip(numbers, self._direct.items(), strict=True):
            self._spooled[token] = number, len(record.value or b"")
        self._direct.clear()

    def is_direct(self, token: int) -> bool:
        """Return whether the record of *token* is not in the spool."""
        return token in self._direct

    def take(self, token: int) -> Record | int:
        """Forget *token*; return its record, or the record's number in the spool."""
        if token in self._spooled:
            return self._spooled.pop(token)[0]
        return self._direct.pop(token)[0]
