"""What a quota cut off: the records in overflow topics."""

from itertools import permutations
from typing import Any

import pytest

from nightwire.filters.decision.apply_quotas import Overflow
from nightwire.filters.delivery.overflow import encode_overflow
from nightwire.filters.model.messages import PassedAlert
from nightwire.schemas import Codec, records, wire

ALERTS = [PassedAlert("alerts.sim", 1, offset, 1000 + offset, 7, f"a{offset}") for offset in (11, 14)]
FILTERS = [("me/f", 2), ("you/g", 5)]
CUT = Overflow(ALERTS, FILTERS, [0, 1, 1], [1, 0, 1], [None, 2.5, 0.5])


def test_overflow_says_where_what_was_cut_off_lies() -> None:
    found = list(encode_overflow(CUT, 5000))
    assert [(key, visit) for key, visit, _ in found] == [("me/f", b"7"), ("you/g", b"7"), ("you/g", b"7")]
    record = records.OVERFLOW.decode(found[0][2])
    assert (record["owner"], record["name"], record["version"]) == ("me", "f", 2)
    assert (record["topic"], record["partition"], record["offset"]) == ("alerts.sim", 1, 14)
    assert (record["survey"], record["visit"], record["alert"], record["rank"]) == ("sim", 7, "a14", 2.5)
    assert found[0][2] == records.OVERFLOW.encode({**record, "time": 5000})


def test_a_filters_overflow_comes_in_one_piece_in_order() -> None:
    found = [(key, records.OVERFLOW.decode(value)["offset"]) for key, _, value in encode_overflow(CUT, 5000)]
    assert [key for key, _ in found] == sorted(key for key, _ in found)
    theirs = [offset for key, offset in found if key == "you/g"]
    assert theirs == [
        CUT.alerts[alert].offset
        for alert, number in zip(CUT.alert_index, CUT.filter_index, strict=True)
        if CUT.filters[number][0] == "you/g"
    ]


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_the_order_of_the_schemas_fields_is_of_no_account(order: tuple[int, ...]) -> None:
    usual: list[Any] = records.OVERFLOW.schema["fields"]
    parts = [usual[:2], usual[2:7], usual[7:]]
    schema = {**records.OVERFLOW.schema, "fields": [field for at in order for field in parts[at]]}
    for (_, _, value), (_, _, same) in zip(
        encode_overflow(CUT, 5000, schema), encode_overflow(CUT, 5000), strict=True
    ):
        assert Codec(schema).decode(wire.unframe(value)[1]) == records.OVERFLOW.decode(same)
