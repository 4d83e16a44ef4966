"""What the follower counts: each record once, however often it is read."""

import hashlib
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nightwire.core.accounting import Account
from nightwire.gateway.eventlog.event import Event
from nightwire.gateway.eventlog.event_index import EventIndex
from nightwire.gateway.eventlog.follower import Follower
from nightwire.gateway.eventlog.start_offsets import StartOffsets
from nightwire.schemas import DecodeError
from nightwire.schemas.topics import VOEVENTS


class Record:
    """A record of `voevents`; one without a hash is none that can be read."""

    def __init__(self, partition: int, offset: int, *, dead: bool = False) -> None:
        self._partition, self._offset, self._dead = partition, offset, dead

    def topic(self) -> str:
        return VOEVENTS

    def partition(self) -> int:
        return self._partition

    def offset(self) -> int:
        return self._offset

    def key(self) -> bytes:
        return b"ivo://a.b/c#%d" % self._offset

    def value(self) -> bytes:
        return b"no record"

    def headers(self) -> list[tuple[str, bytes]]:
        digest = hashlib.sha256(b"%d %d" % (self._partition, self._offset)).digest()
        return [] if self._dead else [("hash", digest)]

    def error(self) -> None:
        return None


class Reader:
    """Gives batches, then stops its follower."""

    def __init__(self, *batches: list[Record]) -> None:
        self.batches, self.stop = list(batches), threading.Event()

    def assign(self, partitions: object) -> None:
        pass

    def poll(self, timeout: float) -> Record | None:
        if not self.batches:
            self.stop.set()
            return None
        return self.batches[0].pop(0)

    def consume(self, count: int, timeout: float) -> list[Record]:
        return self.batches.pop(0)


class Decoder:
    """Makes an event of each record that has a hash."""

    def prepare(self, records: list[Record]) -> None:
        """There are no conditions."""

    def event(self, record: Record) -> Event:
        if not record.headers():
            raise DecodeError("it is none")
        return Event(VOEVENTS, record.partition(), record.offset(), record.key().decode(), "test", b"<V/>")


class Sink:
    """Keeps what the follower hands on."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.dead: list[int] = []
        self.accounts: dict[tuple[int, int], Account] = {}

    def publish(self, events: Sequence[Event], hashes: Sequence[bytes]) -> None:
        self.events += events

    def send_to_dead_letters(self, message: Any, reason: str) -> None:
        self.dead.append(message.offset())

    def account(self, account: Account) -> None:
        self.accounts[account.partition, account.first] = account


def follow(folder: Path, accounted: dict[int, int], *batches: list[Record]) -> Sink:
    """Follow *batches* from offset 0 on, of which those before *accounted* were counted."""
    reader, sink = Reader(*batches), Sink()
    start = {(VOEVENTS, partition): 0 for partition in accounted}
    parts: Any = (reader, Decoder())
    follower = Follower(
        parts[0],
        StartOffsets(start, start, accounted, start),
        index=EventIndex(folder / "events"),
        names=EventIndex(folder / "names"),
        decoder=parts[1],
        sink=sink,
    )
    follower.run(reader.stop)
    return sink


def test_a_record_that_is_read_again_counts_once(tmp_path: Path) -> None:
    first, second = [Record(0, number) for number in range(5)], [Record(0, number) for number in range(5, 9)]
    sink = follow(tmp_path, {0: 3}, first, second)
    (account,) = sink.accounts.values()
    assert (account.first, account.last, account.read, account.delivered) == (3, 8, 6, 6)
    assert len(sink.events) == 9


def test_partitions_and_dead_letters_have_accounts_of_their_own(tmp_path: Path) -> None:
    batch = [Record(0, 0), Record(1, 0), Record(0, 1, dead=True), Record(1, 1), Record(0, 2)]
    sink = follow(tmp_path, {0: 0, 1: 0}, batch)
    found = {
        partition: (one.last, one.read, one.delivered, one.dead_lettered)
        for (partition, _), one in sink.accounts.items()
    }
    assert found == {0: (2, 3, 2, 1), 1: (1, 2, 2, 0)}
    assert (sink.dead, len(sink.events)) == ([1], 4)
