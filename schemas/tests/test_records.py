"""Control records: schemas that document themselves, ids that never change."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from nightwire.schemas import SIM_ALERT_ID, Codec, DecodeError, records, sim_alert_schema
from nightwire.schemas.commands import fields
from nightwire.schemas.records import FILTER, RECORDS, Record, load_schema, own_schema
from nightwire.schemas.wire import frame

NOW = datetime(2026, 11, 21, 1, 2, 3, 4000, tzinfo=UTC)
COUNTS = {"evaluated": 9, "passed": 1, "rejected": 7, "capped": 1, "faulted": 0}
SAMPLES: dict[str, dict[str, Any]] = {
    "account": {
        "stage": "filters",
        "source": "alerts.sim",
        "partition": 0,
        "first": 0,
        "last": 9,
        "read": 9,
        "delivered": 1,
        "rejected": {"no-filter-passed": 7},
        "capped": 1,
        "faulted": 0,
        "dead_lettered": 0,
        "filters": {"ada/bright": COUNTS},
        "written": NOW,
    },
    "visit": {
        "survey": "sim",
        "visit": 1,
        "opened": NOW,
        "closed": None,
        "written": 5,
        "refused": 0,
        "partitions": [{"partition": 0, "first": 0, "last": 4}],
        "estimated": False,
    },
    "voevent": {
        "ivorn": "ivo://a/b#c",
        "role": "test",
        "version": "2.0",
        "author": None,
        "date": None,
        "event_time": "2026-11-21T00:00:00",
        "ra": 1.0,
        "dec": -1.0,
        "error": None,
        "coord_system": "UTC-FK5-GEO",
        "params": [{"name": "n", "value": "1", "unit": None, "ucd": None, "group": "g"}],
        "citations": [{"ivorn": "ivo://a/b#d", "cite": "followup"}],
        "origin": "author",
        "received": NOW,
        "raw": b"<xml/>",
    },
    "filter": {
        "owner": "ada",
        "name": "bright",
        "version": 1,
        "live": True,
        "survey": "*",
        "language": "python",
        "source": "def f(alert): ...",
        "entry": "f",
        "fields": ["diaSource.psfFlux"],
        "cap": 20,
        "choice": "best",
        "sources": ["filter.ada.faint"],
        "output": "broker.anna.lite",
        "drop": ["cutoutScience"],
        "means": ["prvDiaSources.psfFlux"],
        "transform": "transform",
        "program": "{}",
        "facts": "{}",
        "cost_us": 12.5,
        "behind": "suspend",
        "remarks": ["line 3: a class"],
        "suspended": "too slow",
        "submitted": NOW,
    },
    "request": {
        "id": "1",
        "action": "submit",
        "owner": "ada",
        "name": "bright",
        "survey": "*",
        "language": "python",
        "source": "def f(alert): ...",
        "entry": "f",
        "version": 0,
        "cap": 0,
        "choice": "first",
        "sources": [],
        "output": "",
        "drop": [],
        "means": [],
        "transform": "",
        "trial": True,
        "behind": "newest",
        "backfill": 0,
        "watchlist": b"ra,dec\n1,2\n",
        "time": NOW,
    },
    "answer": {
        "request": "1",
        "accepted": False,
        "owner": "ada",
        "name": "bright",
        "version": 0,
        "reasons": ["line 1: …"],
        "time": NOW,
    },
}
SAMPLES["overflow"] = {
    "owner": "ada",
    "name": "bright",
    "version": 1,
    "survey": "sim",
    "visit": 7,
    "topic": "alerts.sim",
    "partition": 0,
    "offset": 12,
    "alert": "9001",
    "rank": 2.5,
    "time": NOW,
}
SAMPLES["seen"] = {
    "owner": "ada",
    "name": "bright",
    "version": 1,
    "way": "columns",
    "since": NOW,
    "evaluated": 10_000,
    "passed": 120,
    "faulted": 3,
    "sent": 20,
    "capped": 100,
    "cpu": 0.004,
    "delay_p50": 0.4,
    "delay_p99": None,
    "evaluated_at": NOW,
    "passed_at": None,
    "stopped": {"line 3: alert.snr > 5": 60},
    "lane": "slow",
    "behind": 1_200,
    "behind_s": 4.7,
    "unjudged": 0,
    "time": NOW,
}
SAMPLES["entry"] = {
    "site": "local",
    "kind": "process",
    "name": "gateway",
    "owner": "",
    "survey": "lsst",
    "topic": "",
    "endpoints": {"metrics": "http://127.0.0.1:9100/metrics"},
    "capabilities": '{"feeds": 2}',
    "instance": "a1",
    "interval": 2.0,
    "ended": False,
}
SAMPLES["subscription"] = {
    "site": "local",
    "subscriber": "ann",
    "name": "alerts.lsst.bright",
    "kind": "subscription",
    "topic": "alerts.lsst",
    "condition": "magnitude < 19",
    "channel": None,
    "instance": "5f1c",
    "made": NOW,
    "interval": 30.0,
    "expires": None,
}
SAMPLES["channel"] = {
    "topic": "alerts.lsst",
    "group": "239.10.0.1:5400",
    "condition": "magnitude < 19",
    "survey": "lsst",
    "full": False,
    "keys": [b"new", b"old"],
    "rotated": 1_795_000_000_000,
}
SAMPLES["mapping"] = {
    "topic": "alerts.lsst",
    "name": "bright",
    "condition": "magnitude < 19",
    "derived": True,
    "group": "239.10.0.1:5400",
    "full": False,
    "priority": 1,
    "since": [17, 0],
    "automatic": True,
    "made_by": "ann",
    "made": NOW,
}
SAMPLES["flow"] = {
    "name": "bright",
    "text": '[sources.lsst]\ntopic = "alerts.lsst"\n',
    "paused": True,
    "made_by": "ann",
    "made": NOW,
}
SAMPLES["owed"] = {
    "group": "ann.night",
    "topic": "alerts.lsst",
    "partition": 2,
    "first": 17_000,
    "sent": bytes([0, 1, 4]),
}
SAMPLES["comment"] = {
    "id": "0f3a",
    "about": "filter/ada/bright",
    "text": "Too many variable stars.",
    "time": NOW,
}
SAMPLES["position"] = {
    "feed": "voevents",
    "peer": "ivo://telescope.example/tcs",
    "owner": "192.0.2.7",
    "log": "cluster/topic",
    "positions": [{"topic": "voevents", "partition": 2, "offset": 17}],
    "written": NOW,
}
each = pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)


def every_field(schema: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield path and definition of every field."""
    for path, _kind, field in fields(schema):
        yield path, field


@each
def test_a_record_comes_back(record: Record) -> None:
    sample = SAMPLES[record.name]
    assert record.decode(record.encode(sample)) == sample
    assert [field["name"] for field in record.schema["fields"]] == list(sample)


@each
def test_a_record_is_in_wire_format_with_its_own_id(record: Record) -> None:
    value = record.encode(SAMPLES[record.name])
    assert value[:5] == b"\x00" + record.schema_id.to_bytes(4, "big")
    assert own_schema(record.schema_id) == record.schema


def test_ids_are_these_for_ever() -> None:
    assert {record.name: record.schema_id for record in RECORDS} == {
        "account": 100_001,
        "visit": 100_002,
        "voevent": 100_003,
        "filter": 100_016,
        "request": 100_030,
        "answer": 100_006,
        "overflow": 100_009,
        "seen": 100_018,
        "position": 100_014,
        "entry": 100_019,
        "subscription": 100_020,
        "channel": 100_025,
        "mapping": 100_026,
        "flow": 100_027,
        "owed": 100_031,
        "comment": 100_032,
    }
    assert {record.name: record.older for record in RECORDS if record.older} == {
        "filter": (100_015, 100_011, 100_007, 100_004),
        "request": (100_017, 100_012, 100_008, 100_005),
        "seen": (100_010,),
        "position": (100_013,),
    }
    assert SIM_ALERT_ID == 100_100
    assert own_schema(1100) is None


def test_an_older_record_is_read_as_the_newest() -> None:
    older = Codec(load_schema("filter.100004.avsc"))
    known = {field["name"] for field in older.schema["fields"]}
    sample = SAMPLES["filter"]
    value = frame(100_004, older.encode({name: sample[name] for name in known}))
    found = FILTER.decode(value)
    assert {name: found[name] for name in known} == {name: sample[name] for name in known}
    assert {name: found[name] for name in found.keys() - known} == {
        "cap": 20,
        "choice": "first",
        "sources": [],
        "output": "",
        "drop": [],
        "means": [],
        "transform": "",
        "program": "",
        "facts": "",
        "cost_us": None,
        "behind": "newest",
        "remarks": [],
        "suspended": "",
    }


@each
def test_every_field_says_what_it_means(record: Record) -> None:
    assert [
        path for path, field in every_field(record.schema) if not field.get("doc", "").endswith(".")
    ] == []


def test_every_field_of_a_simulated_alert_says_what_it_means() -> None:
    schema = sim_alert_schema()
    assert [path for path, field in every_field(schema) if not field.get("doc")] == []
    assert own_schema(SIM_ALERT_ID) == schema
    assert Codec(schema)


def test_a_record_of_another_kind_is_refused_by_name() -> None:
    with pytest.raises(DecodeError, match="100002 where a account record has 100001"):
        records.ACCOUNT.decode(records.VISIT.encode(SAMPLES["visit"]))


def test_counts_may_be_left_out_of_an_account() -> None:
    short = {
        name: SAMPLES["account"][name]
        for name in ("stage", "source", "partition", "first", "last", "read", "written")
    }
    full = records.ACCOUNT.decode(records.ACCOUNT.encode(short))
    assert (full["delivered"], full["rejected"], full["filters"]) == (0, {}, {})
