"""What is in JSON can be read by everybody, and what HTTP's headers cannot hold is said."""

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from nightwire.directory.mediator.formats import as_json
from nightwire.directory.mediator.session import format_cursor, parse_cursor
from nightwire.schemas.serving import RefusedError

RECORD: dict[str, Any] = {
    "nan": float("nan"),
    "far": float("-inf"),
    "stamp": b"\x1f\x8b",
    "list": [{"stamp": b"x"}, b"y", 1],
    "when": datetime(2026, 1, 2, tzinfo=UTC),
    "long": timedelta(seconds=1.5),
    "exact": Decimal("0.1"),
    "id": UUID(int=1),
    "yes": True,
}


def test_an_alert_is_json_that_everybody_reads() -> None:
    assert json.loads(as_json({"value": RECORD}, stamps=True))["value"] == {
        "nan": None,
        "far": None,
        "stamp": "H4s=",
        "list": [{"stamp": "eA=="}, "eQ==", 1],
        "when": "2026-01-02T00:00:00+00:00",
        "long": 1.5,
        "exact": "0.1",
        "id": "00000000-0000-0000-0000-000000000001",
        "yes": True,
    }


def test_stamps_are_left_out_at_any_depth() -> None:
    said = json.loads(as_json({"value": RECORD}, stamps=False))["value"]
    assert "stamp" not in said
    assert said["list"] == [{}, 1]


@pytest.mark.parametrize("stamps", [False, True])
def test_the_quick_way_says_what_the_slow_one_says(stamps: bool) -> None:
    finite = {name: one for name, one in RECORD.items() if name not in ("nan", "far", "list")}
    quick = json.loads(as_json({"value": finite}, stamps=stamps))["value"]
    slow = json.loads(as_json({"value": {**finite, "nan": float("nan")}}, stamps=stamps))["value"]
    assert slow == {**quick, "nan": None}


@pytest.mark.parametrize("said", ["", "0:17", "0:1,12:999999999999999999"])
def test_a_cursor_is_read_as_it_was_said(said: str) -> None:
    assert format_cursor(parse_cursor(said)) == said


@pytest.mark.parametrize("said", ["0", "0:", ":1", "0:1,", "0:-1", "٣:1", "0:1;1:2", "0:" + "9" * 19])
def test_what_is_no_cursor_is_refused(said: str) -> None:
    with pytest.raises(RefusedError, match="PARTITION:OFFSET"):
        parse_cursor(said)
