"""The layout of answers, by its bytes; and answers that are none."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightwire.filters.sandbox.protocol import (
    ANSWER_HEADER,
    MAX_ADDED,
    MAX_ADDED_BYTES,
    MAX_TEXT,
    MAX_TEXTS,
    PASSED,
    REJECTED,
    ForgedError,
    RowVerdicts,
    answer_length,
    decode_answer,
    encode_answer,
)

NONCE = bytes(range(16))
SOUND = (
    NONCE
    + struct.pack("<6I", 4, 2, 1, 5, 0, 0)
    + bytes([0, 1, 2, 1])
    + struct.pack("<2d", 1.5, 2.5)
    + bytes([0])
    + b"\x03\x00bad"
)


ADDED = b"\x06\0\0\0" + b'{"a":1' + b"\x02\0\0\0{}"
ADDING = SOUND[:36] + struct.pack("<I", len(ADDED)) + SOUND[40:] + ADDED
"""The same of a transform; what it adds is whatever it says: others know what was declared."""


def row_verdicts() -> RowVerdicts:
    """Return what `SOUND` says."""
    said = RowVerdicts(bytearray([REJECTED, PASSED]), [1.5, 2.5])
    said.fault("bad")
    said.states.append(PASSED)
    return said


def test_an_answer_has_this_layout() -> None:
    assert encode_answer(NONCE, row_verdicts()) == SOUND
    found = decode_answer(SOUND, NONCE, 4)
    assert (found.judged, found.passed.tolist(), found.rank.tolist()) == (4, [1, 3], [1.5, 2.5])
    assert (found.faults, found.late) == ({2: "bad"}, False)


def test_what_a_transform_adds_stands_at_the_end() -> None:
    said = row_verdicts()
    for text in ('{"a":1', "{}"):
        said.add(text)
    assert encode_answer(NONCE, said) == ADDING
    assert list(decode_answer(ADDING, NONCE, 4).added) == ['{"a":1', "{}"]
    assert decode_answer(SOUND, NONCE, 4).added == []


def test_a_transform_adds_no_more_than_there_is_room_for() -> None:
    said = RowVerdicts()
    with pytest.raises(ValueError, match="adds 16,385 bytes to an alert, most are 16,384"):
        said.add("x" * (MAX_ADDED + 1))
    for _ in range(MAX_ADDED_BYTES // (MAX_ADDED + 4)):
        said.add("x" * MAX_ADDED)
    with pytest.raises(ValueError, match="to the alerts of a batch"):
        said.add("x" * MAX_ADDED)
    with pytest.raises(ForgedError, match="adds 4,294,967,295 bytes to 2 alerts"):
        answer_length(changed(36, 255, 255, 255, 255), NONCE, 4)  # nobody waits for that


def changed(at: int, *values: int) -> bytes:
    """Return a sound answer with other bytes at *at*."""
    return SOUND[:at] + bytes(values) + SOUND[at + len(values) :]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        SOUND[:-1],
        SOUND + b"x",
        changed(0, 99),  # another question's
        changed(16, 5),  # more rows than there are
        changed(20, 1),  # fewer ranks than rows that passed
        changed(24, 0),  # fewer faults than rows that have them
        changed(20, 255, 255, 255, 255),
        changed(28, 255, 255, 255, 255),  # four gigabytes of text
        changed(32, 2),  # an unknown flag
        changed(36, 1),  # something is added, and is not there
        changed(36, 255, 255, 255, 255),  # four gigabytes are added
        changed(40, 3),  # an unknown state
        changed(41, 0),
        changed(60, 1),  # a text that is not there
        changed(61, 4),  # a text that is cut off
        ADDING[:-1],
        ADDING[:36] + b"\x0a" + ADDING[37:-6],  # to one of two alerts that passed
        ADDING[:-6] + b"\x03" + ADDING[-5:],  # what is added is cut off
    ],
)
def test_what_contradicts_itself_or_the_question_is_no_answer(body: bytes) -> None:
    with pytest.raises(ForgedError):
        decode_answer(body, NONCE, 4)


@given(st.binary(max_size=200))
def test_no_bytes_do_more_than_be_refused(tail: bytes) -> None:
    body = NONCE + tail
    if len(body) >= ANSWER_HEADER.size:
        with pytest.raises(ForgedError):
            decode_answer(body, NONCE, 3)


@given(st.lists(st.sampled_from(["passed", "rejected", "a", "b", "\x1b[2J\n"]), max_size=50), st.booleans())
def test_what_was_said_arrives(rows: list[str], late: bool) -> None:
    said = RowVerdicts(late=late)
    for number, row in enumerate(rows):
        if row == "passed":
            said.ranks.append(float(number))
            said.states.append(PASSED)
        elif row == "rejected":
            said.states.append(REJECTED)
        else:
            said.fault(row)
    body = encode_answer(NONCE, said)
    assert answer_length(body, NONCE, len(rows)) == len(body)
    found = decode_answer(body, NONCE, len(rows))
    assert found.passed.tolist() == [at for at, row in enumerate(rows) if row == "passed"]
    assert found.rank.tolist() == found.passed.tolist()
    assert sorted(found.faults) == [at for at, row in enumerate(rows) if row not in ("passed", "rejected")]
    assert found.late is late


def test_texts_are_few_short_and_harmless() -> None:
    said = RowVerdicts()
    for number in range(MAX_TEXTS + 10):
        said.fault(f"{number}\n\x1b[31m" + "é" * MAX_TEXT)
    found = decode_answer(encode_answer(NONCE, said), NONCE, MAX_TEXTS + 10)
    assert len(set(found.faults.values())) == MAX_TEXTS
    assert all(text.isprintable() and len(text) <= MAX_TEXT for text in found.faults.values())


def test_a_filter_that_is_stopped_between_rank_and_verdict_leaves_a_sound_answer() -> None:
    said = RowVerdicts(bytearray([PASSED]), [1.0, 2.0])
    said.added = [b"{}", b"{}"]
    said.stop(3, "late")
    found = decode_answer(encode_answer(NONCE, said), NONCE, 3)
    assert found.added == ["{}"]
    assert (found.passed.tolist(), found.faults, found.judged, found.late) == ([0], {1: "late"}, 2, True)
