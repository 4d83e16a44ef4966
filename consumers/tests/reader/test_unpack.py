"""What becomes of records that cannot be read: bad, or not yet."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Message

from nightwire.consumers.alert.deduplication import Deduplicator, RecentKeys
from nightwire.consumers.reader.batch import Batch, DecodingContext
from nightwire.consumers.reader.unpack import AlertUnpacker, TableUnpacker
from nightwire.schemas import Columns, Decoded, DecodeError, RegistryAwayError, UnknownSchemaError

FAULTS: dict[bytes, Exception] = {
    b"": DecodeError("no bytes"),
    b"malformed": DecodeError("malformed"),
    b"unknown": UnknownSchemaError("the registry does not have it"),
    b"away": RegistryAwayError("the registry does not answer"),
}


class Decoder:
    """Reads numbers, and fails as it is told."""

    def decode(self, value: bytes) -> Decoded:
        if value in FAULTS:
            raise FAULTS[value]
        return Decoded({"n": int(value)}, None, value, {})

    def columns(self, values: Sequence[bytes], fields: Sequence[str]) -> Columns:
        rows = [at for at, value in enumerate(values) if value not in FAULTS]
        faults = {at: FAULTS[value] for at, value in enumerate(values) if value in FAULTS}
        columns = pa.RecordBatch.from_pydict({name: [int(values[at]) for at in rows] for name in fields})
        return Columns(columns, rows, faults)


CONTEXT = DecodingContext(Decoder(), None, Deduplicator(None, RecentKeys()), partial(Decoder().columns, []))


def numbers(batch: Batch[Any]) -> list[int]:
    """Return what is in a batch, whichever kind."""
    if batch.item is None:
        return []
    return (
        [one.alert["n"] for one in batch.item]
        if isinstance(batch.item, list)
        else batch.item["n"].to_pylist()
    )


@pytest.mark.parametrize("unpack", [AlertUnpacker(CONTEXT).all, TableUnpacker(CONTEXT, ["n"], [], "arrow")])
@pytest.mark.parametrize(
    ("values", "good", "bad", "waiting"),
    [
        ([b"1", b"2"], [1, 2], [], []),
        ([b"1", b"malformed", b"3"], [1, 3], [1], []),
        # its registry answers that there is none: it will not get better
        ([b"unknown", b"2"], [2], [0], []),
        # in order: what lies behind waits too
        ([b"1", b"away", b"3", b"malformed"], [1], [], [1, 2, 3]),
        ([b"malformed", b"away"], [], [0], [1]),
        ([b"away", b"2"], [], [], [0, 1]),
    ],
)
def test_bad_ones_are_named_and_what_waits_keeps_its_place(
    unpack: Callable[[Sequence[Message]], Batch[Any]],
    values: list[bytes],
    good: list[int],
    bad: list[int],
    waiting: list[int],
) -> None:
    messages = [Message(topic="t", partition=0, offset=at, value=one) for at, one in enumerate(values)]
    batch = unpack(messages)
    assert (numbers(batch), batch.count) == (good, len(good))
    assert [one.offset() for one, _ in batch.bad] == bad
    assert [one.offset() for one in batch.waiting] == waiting
    assert [one.offset() for one in batch.messages] == [at for at in range(len(values)) if at not in waiting]
    assert (batch.unavailable is not None) == bool(waiting)


def test_a_record_that_deletes_its_key_is_no_alert() -> None:
    batch = TableUnpacker(CONTEXT, ["n"], [], "arrow")(
        [Message(topic="t", partition=0, offset=0, value=None)]
    )
    assert [why for _, why in batch.bad] == ["the record has no value: it deletes its key"]
