"""Which events are known: hash of the element → where its first record lies in `voevents`.

The log decides.  This index only follows it, and may be thrown away: it is rebuilt from the log.
It is an LMDB environment: one thread writes, any number read, and what a batch brings is there with
the position behind it or not at all.  Nothing waits for the disk, so a crash of the machine may
leave it torn: then it is made anew.
"""

import logging
import os
import struct
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from shutil import rmtree
from typing import NamedTuple
from weakref import WeakValueDictionary

import lmdb

log = logging.getLogger(__name__)

KEY = 16
"""How much of a hash is kept. [byte]  Two of 10⁷ agree in as much with a probability of 10⁻²⁵."""
ADDRESSES = 1 << 36
"""Addresses set aside for it, which are no memory; the file is as large as what is in it. [byte]"""
DAY = 86_400
_PLACE = struct.Struct(">IIQ")
"""Time of the entry [s since 1970], partition, offset: so batches lie in the order of time."""
_POSITION = struct.Struct("<Q")
_TORN = (lmdb.InvalidError, lmdb.CorruptedError, lmdb.VersionMismatchError)
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class IndexEntry(NamedTuple):
    """One record of `voevents`: the hash of its element, and where it lies."""

    hash: bytes
    partition: int
    offset: int


class EventIndex:
    """The index in a folder.  Each thread makes its own; one of them writes.

    Args:
        folder: Where it is; made where it is missing.
        days: How long an event is known. [day]
    """

    def __init__(self, folder: Path, days: float = 30.0) -> None:
        self.folder, self._days = folder, days
        self._store = _open(folder.absolute())
        self._environment = self._store.environment

    def close(self) -> None:
        """Wait until all is on disk."""
        self._store.save()

    def follows(self, identity: str) -> bool:
        """Say whether the index is of the log *identity*; if not, empty it and make it so."""
        with self._environment.begin(write=True) as change:
            known = change.get(b"identity", db=self._store.log)
            if known != identity.encode():
                self._store.empty(change)
                change.put(b"identity", identity.encode(), db=self._store.log)
        return known in (None, identity.encode())

    def knows(self, digest: bytes) -> bool:
        """Say whether an event with this hash is in the log."""
        return self.first(digest) is not None

    def first(self, digest: bytes) -> tuple[int, int] | None:
        """Return partition and offset of the first record with this hash, or None."""
        with self._environment.begin() as view:
            place = view.get(digest[:KEY], db=self._store.places)
        return None if place is None else _PLACE.unpack(place)[1:]

    def positions(self) -> dict[int, int]:
        """Return the next offset to read of each partition."""
        with self._environment.begin() as view:
            return {
                int(partition): _POSITION.unpack(position)[0]
                for partition, position in view.cursor(self._store.positions)
            }

    def add(self, sightings: Sequence[IndexEntry], positions: Mapping[int, int]) -> None:
        """Note *sightings*, in log order, and that the log was read up to *positions*."""
        self._store.mark_unsaved()
        now = int(time.time())
        with self._environment.begin(write=True) as change:
            if sightings:
                self._note(change, sightings, now)
            self._forget(change, max(0, now - int(self._days * DAY)))
            for partition, position in positions.items():
                change.put(b"%d" % partition, _POSITION.pack(position), db=self._store.positions)

    def _note(self, change: lmdb.Transaction, sightings: Sequence[IndexEntry], now: int) -> None:
        entries = [(one.hash[:KEY], _PLACE.pack(now, one.partition, one.offset)) for one in sightings]
        with change.cursor(self._store.places) as places:
            places.putmulti(entries, overwrite=False)
        change.put(entries[0][1], b"".join(key for key, _ in entries), db=self._store.batches)

    def _forget(self, change: lmdb.Transaction, before: int) -> None:
        """Drop two batches at most, so that this takes no longer than noting does."""
        with change.cursor(self._store.batches) as batches:
            old = [(seen, keys) for seen, keys in islice(batches, 2) if _seen(seen) < before]
        for seen, keys in old:
            change.delete(seen, db=self._store.batches)
            for start in range(0, len(keys), KEY):
                key = keys[start : start + KEY]
                place = change.get(key, db=self._store.places)
                if place is not None and _seen(place) < before:
                    change.delete(key, db=self._store.places)


def _seen(place: bytes | memoryview) -> int:
    """Return when what lies at *place* was seen. [s since 1970]"""
    return int.from_bytes(place[:4], "big")


class _Store:
    """The environment in a folder: one in a process, whoever uses it.

    Attributes:
        environment: LMDB's.
        places: Where the first record with a hash lies.
        batches: Hashes that were seen at once, in the order of time.
        positions: The next offset to read, per partition.
        log: Which log all this is of.
    """

    def __init__(self, folder: Path) -> None:
        self._unsaved = folder / "unsaved"
        self._changed = False
        if self._unsaved.exists() and self._unsaved.read_text() != _boot():
            log.warning("%s: the machine went down before it was saved; it is made anew", folder)
            rmtree(folder)
        self.environment = _environment(folder)
        self.places, self.batches, self.positions, self.log = (
            self.environment.open_db(name) for name in (b"places", b"batches", b"positions", b"log")
        )

    def empty(self, change: lmdb.Transaction) -> None:
        """Drop everything."""
        for database in (self.places, self.batches, self.positions, self.log):
            change.drop(database, delete=False)

    def mark_unsaved(self) -> None:
        """Have the index made anew if this start of the machine ends before `save`."""
        if not self._changed:
            with self._unsaved.open("w") as file:
                file.write(_boot())
                file.flush()
                os.fsync(file.fileno())
            self._changed = True

    def save(self) -> None:
        """Wait until what was written is on disk."""
        if self._changed:
            self.environment.sync(True)
            self._unsaved.unlink()
            self._changed = False


def _environment(folder: Path) -> lmdb.Environment:
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return _lmdb(folder)
    except _TORN as error:
        log.warning("%s cannot be read (%s); it is made anew", folder, error)
        rmtree(folder)
        return _lmdb(folder)


def _lmdb(folder: Path) -> lmdb.Environment:
    return lmdb.open(str(folder), map_size=ADDRESSES, max_dbs=4, sync=False, metasync=False, readahead=False)


_stores: "WeakValueDictionary[Path, _Store]" = WeakValueDictionary()
_opening = threading.Lock()


def _open(folder: Path) -> _Store:
    """Return the store in *folder*: the same one for all threads of this process."""
    with _opening:
        store = _stores.get(folder)
        if store is None:
            store = _stores[folder] = _Store(folder)
        return store


def _boot() -> str:
    """Return an id of this start of the machine; empty where the system has none."""
    with suppress(OSError):
        return _BOOT.read_text().strip()
    return ""
