"""A sender and a receiver by NORM (RFC 5740), a multicast that repairs by itself, of libnorm.

Its order: ``part`` (``send`` or ``receive``), ``group``, ``interface`` (a name), ``count``,
``size`` [byte], ``rate`` [1/s].  A receiver ends after so many records, or after ``patience`` [s]
without one, `STARTS` times as long before the first; a sender when its input ends, for it repairs
until then.  Each record is an object of NORM's own, which begins with its number and when it was
written.
"""

import ctypes
import ctypes.util
import os
import select
import struct
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

from nightwire.benchmarks.workers.multicast_receiver import STARTS, Findings
from nightwire.benchmarks.workers.worker import emit, first_order

HEAD = struct.Struct("<Id")
"""Number, and time [ms since 1970, UTC], at the beginning of a record."""
COMPLETED = 20
"""NORM_RX_OBJECT_COMPLETED"""
SYNC_ALL = 2
BUFFER, KEPT = 64 << 20, 4096
"""Room for what may be repaired [byte], and so many objects: 1.6 s of them."""
BLOCK, PARITY = 64, 8
"""Segments of a block, and what repairs it."""
AHEAD = 3.0
"""NORM may send so many times as fast as records are written: repairs need room."""


class Event(ctypes.Structure):
    """NormEvent."""

    _fields_ = (
        ("type", ctypes.c_int), ("session", ctypes.c_void_p),
        ("sender", ctypes.c_void_p), ("object", ctypes.c_void_p),
    )  # fmt: skip


def is_there() -> bool:
    """Return whether this machine has libnorm."""
    return ctypes.util.find_library("norm") is not None


def library() -> Any:
    """Return libnorm."""
    norm, handle = ctypes.CDLL(ctypes.util.find_library("norm")), ctypes.c_void_p
    for name in ("NormCreateInstance", "NormCreateSession", "NormDataEnqueue", "NormDataAccessData"):
        getattr(norm, name).restype = handle
    for name in ("NormStartSender", "NormStartReceiver", "NormGetNextEvent"):
        getattr(norm, name).restype = ctypes.c_bool
    norm.NormObjectGetSize.restype = ctypes.c_longlong
    return norm


class Session:
    """A session of a group, within a ``with`` block.

    Args:
        order: What a worker was started with.
    """

    def __init__(self, order: Mapping[str, Any]) -> None:
        self.norm, (address, _, port) = library(), order["group"].partition(":")
        self._instance = ctypes.c_void_p(self.norm.NormCreateInstance(False))
        self.one = ctypes.c_void_p(
            self.norm.NormCreateSession(self._instance, address.encode(), int(port), os.getpid())
        )
        self.norm.NormSetMulticastInterface(self.one, order["interface"].encode())
        self.norm.NormSetRxPortReuse(self.one, True, None, None, 0)  # both may be on one host
        self.norm.NormSetMulticastLoopback(self.one, True)
        self._hears = self.norm.NormGetDescriptor(self._instance)

    def objects(self, timeout: float) -> Iterator[bytes]:
        """Yield what has come whole, or comes within *timeout* [s]."""
        event = Event()
        if not select.select([self._hears], [], [], timeout)[0]:
            return
        while self.norm.NormGetNextEvent(self._instance, ctypes.byref(event), False):
            if event.type == COMPLETED:
                one = ctypes.c_void_p(event.object)
                yield ctypes.string_at(self.norm.NormDataAccessData(one), self.norm.NormObjectGetSize(one))

    def close(self) -> None:
        """Leave the group."""
        self.norm.NormDestroyInstance(self._instance)


def send(session: Session, order: Mapping[str, Any]) -> None:
    """Send so many records at so many a second; repair until the input ends."""
    norm, one, size, rate = session.norm, session.one, order["size"], order["rate"]
    norm.NormSetTTL(one, ctypes.c_ubyte(1))
    norm.NormSetTxRate(one, ctypes.c_double(AHEAD * rate * size * 8))
    norm.NormSetTxCacheBounds(one, ctypes.c_longlong(BUFFER), KEPT, 2 * KEPT)
    norm.NormStartSender(one, os.getpid(), BUFFER, size, BLOCK, PARITY, 0)
    emit({"ready": True})
    records, began = list[bytes](), time.perf_counter()  # NORM reads them until it needs them no more
    for number in range(order["count"]):
        time.sleep(max(0.0, began + number / rate - time.perf_counter()))
        records.append(HEAD.pack(number, time.time() * 1000) + os.urandom(size - HEAD.size))
        while not norm.NormDataEnqueue(one, records[-1], size, None, 0):
            [*session.objects(0.001)]
    while not select.select([sys.stdin], [], [], 0.0)[0]:
        [*session.objects(0.1)]


def receive(session: Session, order: Mapping[str, Any]) -> None:
    """Take what comes, and tell what it was."""
    norm, one, found = session.norm, session.one, Findings()
    norm.NormSetDefaultUnicastNack(one, True)
    norm.NormSetDefaultSyncPolicy(one, SYNC_ALL)
    norm.NormSetRxCacheLimit(one, ctypes.c_ushort(2 * KEPT))
    norm.NormStartReceiver(one, BUFFER)
    norm.NormSetRxSocketBuffer(one, 4 << 20)
    emit({"ready": True})
    deadline = time.monotonic() + STARTS * order["patience"]
    while found.count < order["count"] and time.monotonic() < deadline:
        for record in session.objects(0.1):
            number, written = HEAD.unpack_from(record)
            found.note(0, number, written, len(record))
            deadline = time.monotonic() + order["patience"]
    emit(found.told())


if __name__ == "__main__":
    given = first_order()
    session_ = Session(given)
    {"send": send, "receive": receive}[given["part"]](session_, given)
    session_.close()
