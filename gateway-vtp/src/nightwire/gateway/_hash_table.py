"""A hash table in files: hash of an element → where its first record lies.

Hashes come in no order, so a sorted structure would rewrite a page for each; here each is one slot of 32
bytes, written where its hash says.  64 files, each a table of its own that doubles when it is three fifths
full, so that no growth takes long.  The files are mapped into memory, whose pages go back to the page cache
again and again.  (On ext4 a write of 32 bytes took 25 µs, into a mapped page 0.5 µs.)

One thread writes, any number read, all in one process.
"""

import mmap
import struct
import threading
from pathlib import Path
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

FILES = 64
KEY = 16
"""How much of a hash is kept. [byte]  Two of 10⁷ agree in as much with a probability of 10⁻²⁵."""
FIRST_SLOTS = 1 << 10
SPILL = 1 << 9
"""Slots behind the last home, for what finds its own taken."""
FULL = 0.6
TOUCHED = 10_000
"""Slots that are written before their pages are given back; at 4 KiB each they are what is held at most."""

_SLOT = struct.Struct("<16sIIQ")
_TYPE = np.dtype([("key", "V16"), ("partition", "<u4"), ("seen", "<u4"), ("place", "<u8")])
SIZE = _SLOT.size
"""Length of a slot. [byte]  An empty one is all zeros."""
_NOTHING = bytes(KEY)

Slots = npt.NDArray[np.void]


class TableFullError(Exception):
    """A slot was sought behind the last one: the table has to grow."""


class _File:
    """One file: a table of slots, found by the bytes of the hash behind the first."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(bytes((FIRST_SLOTS + SPILL) * SIZE))
        with path.open("r+b") as file:
            self._path, self._memory = path, mmap.mmap(file.fileno(), 0)
        self._slots = len(self._memory) // SIZE - SPILL
        self.count = int(np.count_nonzero(self._table()["place"]))
        self._most = int(FULL * self._slots)

    def find(self, key: bytes) -> tuple[int, int] | None:
        """Return partition and place (offset + 1) of *key*, or None."""
        _, slot = self._seek(key)
        if slot is None:
            return None
        _, partition, _, place = _SLOT.unpack(slot)
        return partition, place

    def add(self, key: bytes, partition: int, seen: int, place: int) -> bool:
        """Note *key* where it is not known; say whether that was so.

        Raises:
            TableFullError: There is no room for it.
        """
        at, slot = self._seek(key)
        if slot is None:
            self._memory[at : at + SIZE] = _SLOT.pack(key, partition, seen, place)
            self.count += 1
        return slot is None

    @property
    def full(self) -> bool:
        """Whether it is time to grow."""
        return self.count > self._most

    def rewritten(self, *, slots: int | None = None, since: int = 0) -> "_File":
        """Return this file written anew with so many *slots*, without what was seen before *since*."""
        held = self._table()
        held = held[(held["place"] != 0) & (held["seen"] >= since)]
        slots = slots or self._slots
        while (placed := _placed(held, slots)) is None:
            slots *= 2
        part = self._path.with_suffix(".part")
        part.write_bytes(placed.tobytes())
        part.replace(self._path)
        return _File(self._path)

    def doubled(self) -> "_File":
        """Return this file with twice as many slots."""
        return self.rewritten(slots=2 * self._slots)

    def sync(self) -> None:
        """Wait until what was written is on disk."""
        self._memory.flush()

    def let_go(self) -> None:
        """Give the pages that were touched back to the system, which has them in its cache."""
        self._memory.madvise(mmap.MADV_DONTNEED)

    def _seek(self, key: bytes) -> tuple[int, bytes | None]:
        """Return where *key* is [byte] and its slot; or where it belongs, and None."""
        memory, first = self._memory, int.from_bytes(key[1:9], "little") & (self._slots - 1)
        for at in range(first * SIZE, len(memory), SIZE):
            found = memory[at : at + KEY]
            if found == key:
                return at, memory[at : at + SIZE]
            if found == _NOTHING:
                return at, None
        raise TableFullError(f"{self._path} has no slot left")

    def _table(self) -> Slots:
        return np.frombuffer(self._memory, dtype=_TYPE)


def _placed(held: Slots, slots: int) -> Slots | None:
    """Return a table of *slots* that holds *held*; None where one would lie behind its end.

    In order of their homes, each takes its home or the slot behind the one before, whichever comes later.
    """
    table = np.zeros(slots + SPILL, dtype=_TYPE)
    if not len(held):
        return table
    keys = np.ascontiguousarray(held["key"]).view("u1").reshape(-1, KEY)
    homes = np.ascontiguousarray(keys[:, 1:9]).view("<u8").ravel() & np.uint64(slots - 1)
    order = np.argsort(homes, kind="stable")
    steps = np.arange(len(held))
    places = steps + np.maximum.accumulate(homes[order].astype(np.int64) - steps)
    if places[-1] >= len(table):
        return None
    table[places] = held[order]
    return table


class HashTable:
    """The table in a folder.

    Args:
        folder: Where its files are; made where it is missing.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._files = [_File(folder / f"{number:02x}") for number in range(FILES)]
        self.changed = False
        self._touched = 0

    def find(self, digest: bytes) -> tuple[int, int] | None:
        """Return partition and offset of *digest*, or None."""
        try:
            found = self._files[digest[0] % FILES].find(digest[:KEY])
        except TableFullError:
            return None
        return None if found is None else (found[0], found[1] - 1)

    def add(self, digest: bytes, partition: int, offset: int, seen: int) -> None:
        """Note *digest* where it is not known."""
        number = digest[0] % FILES
        file, key = self._files[number], digest[:KEY]
        try:
            file.add(key, partition, seen, offset + 1)
        except TableFullError:
            file = self._files[number] = file.doubled()
            file.add(key, partition, seen, offset + 1)
        if file.full:
            self._files[number] = file.doubled()
        self._touched += 1
        if self._touched == TOUCHED:
            self.let_go()

    def let_go(self) -> None:
        """Give the pages that were touched back to the system."""
        self._touched = 0
        for one in self._files:
            one.let_go()

    def forget(self, before: int) -> int:
        """Drop what was seen before the time *before* [s since 1970]; return how many."""
        held = sum(one.count for one in self._files)
        self._files = [one.rewritten(since=before) for one in self._files]
        return held - sum(one.count for one in self._files)

    def sync(self) -> None:
        """Wait until what was written is on disk."""
        for one in self._files:
            one.sync()


_open: "WeakValueDictionary[Path, HashTable]" = WeakValueDictionary()
_opening = threading.Lock()


def open_table(folder: Path) -> HashTable:
    """Return the table in *folder*: the same one for all threads of this process."""
    with _opening:
        table = _open.get(folder)
        if table is None:
            table = _open[folder] = HashTable(folder)
        return table
