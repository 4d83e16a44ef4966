"""The messages between the sandbox and a filter's process.  Pure: values to bytes and back.

A request is a header, at times with a descriptor, and a body in JSON: processes trust the sandbox.
An answer has a fixed layout of which the sandbox takes nothing on trust:

    header   16 bytes: the request's nonce; u32 judged, passed, faulted, bytes of texts, flags,
             bytes added
    states   judged × u8: 0 rejected, 1 passed, 2 faulted, for rows 0, 1, …
    ranks    passed × f64, NaN where none
    faults   faulted × u8: number of the text
    texts    u16 length, UTF-8; at most 255 of them
    added    where the filter has a transform, for each that passed: u32 length, UTF-8: what the
             transform adds, as JSON

Little-endian throughout.
"""

import json
import signal
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

REQUEST_HEADER = struct.Struct("<16sBI")
"""Nonce, kind, length of the body [byte]."""

BATCH, JUDGE, RELEASE = 1, 2, 3
"""Kinds of requests: map the batch whose descriptor comes along; judge it; forget it."""

READY = struct.Struct("<8s32s")
"""A new process's first message: the mark, and for each of `LAYERS` whether it is missing."""
MARK = b"confined"

STOP, INTERRUPT = signal.SIGUSR1, signal.SIGUSR2
"""Stop judging; stop, unless a column is being made: that is done once for all alerts."""

GRACE_S = 0.3
"""Time that a filter's process has to answer once it was told to stop. [s]"""


def encode_request(kind: int, body: dict[str, Any], nonce: bytes = bytes(16)) -> bytes:
    """Return a request as it is sent."""
    packed = json.dumps(body).encode()
    return REQUEST_HEADER.pack(nonce, kind, len(packed)) + packed


ANSWER_HEADER = struct.Struct("<16sIIIIII")
NONCE_SIZE = 16
"""Length of a nonce. [byte]"""
REJECTED, PASSED, FAULTED = 0, 1, 2
LATE = 1
"""Flag: the filter was told to stop, and did."""
MAX_TEXT = 600
"""Longest text. [byte]"""
MAX_TEXTS = 64
"""Distinct texts in one answer; further faults take the last."""
MAX_TEXT_BYTES = MAX_TEXTS * (MAX_TEXT + 2)
MAX_ADDED = 1 << 14
"""Longest text of what is added to an alert. [byte]"""
MAX_ADDED_BYTES = 16 << 20
"""The same of all alerts of an answer."""
ADDED_SIZE = struct.Struct("<I")


class ForgedError(Exception):
    """These bytes are no answer to this request."""


@dataclass
class RowVerdicts:
    """The verdicts of a filter on rows 0, 1, …, one state each, as they are given."""

    states: bytearray = field(default_factory=bytearray)
    ranks: list[float] = field(default_factory=list)
    fault_numbers: bytearray = field(default_factory=bytearray)
    texts: list[str] = field(default_factory=list)
    added: list[bytes] = field(default_factory=list)
    added_size: int = 0
    late: bool = False

    def add(self, text: str) -> None:
        """Note what a transform adds to the next row, before the row is noted as passed.

        Raises:
            ValueError: It is too much.
        """
        packed = text.encode()
        if len(packed) > MAX_ADDED:
            raise ValueError(f"adds {len(packed):,} bytes to an alert, most are {MAX_ADDED:,}")
        if self.added_size + ADDED_SIZE.size + len(packed) > MAX_ADDED_BYTES:
            raise ValueError(f"adds more than {MAX_ADDED_BYTES:,} bytes to the alerts of a batch")
        self.added.append(packed)
        self.added_size += ADDED_SIZE.size + len(packed)

    def fault(self, text: str) -> None:
        """Note a fault of the next row."""
        if text not in self.texts and len(self.texts) < MAX_TEXTS:
            self.texts.append(text)
        self.fault_numbers.append(self.texts.index(text) if text in self.texts else MAX_TEXTS - 1)
        self.states.append(FAULTED)

    def stop(self, rows: int, text: str) -> None:
        """Note that the filter was stopped, with a fault of the row that it was at, if any."""
        self.late = True
        del self.ranks[self.states.count(PASSED) :]  # it may have been stopped between the two
        del self.fault_numbers[self.states.count(FAULTED) :]
        del self.added[self.states.count(PASSED) :]
        if len(self.states) < rows:
            self.fault(text)


@dataclass(frozen=True)
class Answer:
    """A sound answer: rows that passed, their ranks and additions, and faults by row."""

    judged: int
    passed: "np.ndarray[Any, Any]"
    rank: "np.ndarray[Any, Any]"
    faults: dict[int, str]
    late: bool
    added: Sequence[str] = ()


def encode_answer(nonce: bytes, verdicts: RowVerdicts) -> bytes:
    """Return the answer that carries *verdicts*."""
    texts = b"".join(_packed(text) for text in verdicts.texts)
    added = b"".join(ADDED_SIZE.pack(len(packed)) + packed for packed in verdicts.added)
    counts = (len(verdicts.states), len(verdicts.ranks), len(verdicts.fault_numbers), len(texts))
    header = ANSWER_HEADER.pack(nonce, *counts, verdicts.late, len(added))
    ranks = struct.pack(f"<{len(verdicts.ranks)}d", *verdicts.ranks)
    return b"".join((header, verdicts.states, ranks, verdicts.fault_numbers, texts, added))


def answer_length(head: bytes | bytearray, nonce: bytes, rows: int) -> int:
    """Return how long the answer that begins with *head* has to be. [byte]

    Raises:
        ForgedError: It is not the answer to this request, or says more than *rows* rows can.
    """
    given, judged, passed, faulted, texts, flags, added = ANSWER_HEADER.unpack_from(head)
    if given != nonce:
        raise ForgedError("it answered something that it was not asked")
    if judged > rows or passed + faulted > judged or texts > MAX_TEXT_BYTES or flags not in (0, LATE):
        raise ForgedError(f"its answer says {passed} + {faulted} of {judged} of {rows} rows, flags {flags}")
    if added > min(MAX_ADDED_BYTES, passed * (ADDED_SIZE.size + MAX_ADDED)):
        raise ForgedError(f"its answer adds {added:,} bytes to {passed} alerts")
    return int(ANSWER_HEADER.size + judged + 8 * passed + faulted + texts + added)


def decode_answer(body: bytes | bytearray, nonce: bytes, rows: int) -> Answer:
    """Return the answer in *body*.

    Raises:
        ForgedError: It contradicts itself or the request.
    """
    if len(body) < ANSWER_HEADER.size or len(body) != answer_length(body, nonce, rows):
        raise ForgedError(f"its answer has {len(body)} bytes, which is not what it announced")
    _, judged, passed, faulted, size, flags, _ = ANSWER_HEADER.unpack_from(body)
    ends = np.cumsum([ANSWER_HEADER.size, judged, 8 * passed, faulted, size])
    states = np.frombuffer(body, np.uint8, judged, ends[0])
    rank = np.frombuffer(body, "<f8", passed, ends[1]).astype(np.float64)
    fault_numbers = np.frombuffer(body, np.uint8, faulted, ends[2])
    passing, faults = np.flatnonzero(states == PASSED), np.flatnonzero(states == FAULTED)
    if len(passing) != passed or len(faults) != faulted or (judged and states.max() > FAULTED):
        raise ForgedError("its answer's counts are not those of its rows")
    texts, added = _texts(bytes(body[ends[3] : ends[4]])), _added(bytes(body[ends[4] :]))
    if len(added) not in (0, passed):
        raise ForgedError(f"its answer adds something to {len(added)} of {passed} alerts")
    if faulted and fault_numbers.max() >= len(texts):
        raise ForgedError("its answer names a text that is not in it")
    by_row = {int(row): texts[number] for row, number in zip(faults, fault_numbers, strict=True)}
    return Answer(judged, passing.astype(np.int64), rank, by_row, flags == LATE, added)


def readable(text: str) -> str:
    """Return *text* in one line, without what a terminal or a log would take for a command."""
    return "".join(char if char.isprintable() else " " for char in text).strip()


def _packed(text: str) -> bytes:
    packed = text.encode("utf-8", "replace")[:MAX_TEXT]
    return struct.pack("<H", len(packed)) + packed


def _texts(packed: bytes) -> Sequence[str]:
    texts, at = [], 0
    while at + 2 <= len(packed):
        (size,) = struct.unpack_from("<H", packed, at)
        texts.append(readable(packed[at + 2 : at + 2 + size].decode("utf-8", "replace"))[:MAX_TEXT])
        at += 2 + size
    if at != len(packed):
        raise ForgedError("its answer's texts are cut off")
    return texts


def _added(packed: bytes) -> Sequence[str]:
    found, at = [], 0
    while at + ADDED_SIZE.size <= len(packed):
        (size,) = ADDED_SIZE.unpack_from(packed, at)
        at += ADDED_SIZE.size + size
        found.append(packed[at - size : at].decode("utf-8", "replace"))
    if at != len(packed):
        raise ForgedError("what its answer adds is cut off")
    return found
