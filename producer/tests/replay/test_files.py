"""Files of alerts: what they hold comes out unchanged, what is wrong with them is said."""

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import fastavro
import pytest

from nightwire.producer.replay.files import Found, Refused, find, read
from nightwire.producer.replay.replay import Pace
from nightwire.producer.replay.schema_ids import canonical, schemas_in, survey_id
from nightwire.schemas import Codec, UnknownSchemaError, survey
from nightwire.schemas.wire import frame

SCHEMA = {
    "type": "record",
    "name": "alert",
    "namespace": "lsst.v9_0",
    "fields": [
        {"name": "diaSourceId", "type": "long"},
        {
            "name": "diaSource",
            "type": {
                "type": "record",
                "name": "diaSource",
                "fields": [{"name": "visit", "type": "long"}, {"name": "diaObjectId", "type": "long"}],
            },
        },
    ],
}
FOREIGN = {"type": "record", "name": "alert", "fields": [{"name": "sourceId", "type": "long"}]}


def alert(number: int) -> dict[str, Any]:
    """Return an alert."""
    return {"diaSourceId": number, "diaSource": {"visit": 5, "diaObjectId": 70 + number}}


def container(schema: Mapping[str, Any], *alerts: Mapping[str, Any]) -> bytes:
    """Return an object container of *alerts*."""
    target = io.BytesIO()
    fastavro.writer(target, json.loads(json.dumps(schema)), alerts, codec="deflate")
    return target.getvalue()


class Codecs:
    """A registry that knows one schema."""

    def codec(self, schema_id: int) -> Codec:
        """Return its codec."""
        if schema_id != 900:
            raise UnknownSchemaError(f"schema {schema_id} not found")
        return Codec(SCHEMA)


def read_bytes(content: bytes, folder: Path) -> list[Found | Refused]:
    """Return what is in a file of *content*."""
    path = folder / "night.avro"
    path.write_bytes(content)
    return list(read(path, survey("lsst"), Codecs()))


def test_a_container_gives_each_alert_with_its_bytes_its_schema_and_its_key(tmp_path: Path) -> None:
    items = read_bytes(container(SCHEMA, *map(alert, range(1, 4))), tmp_path)
    codec = Codec(SCHEMA)
    for number, item in enumerate(items, start=1):
        assert isinstance(item, Found)
        assert (item.body, item.key) == (codec.encode(alert(number)), str(70 + number).encode())
        assert item.message is None
    assert len(items) == 3


def test_one_alert_without_an_id_does_not_take_the_others_along(tmp_path: Path) -> None:
    nobody = alert(2) | {"diaSourceId": 0}
    first, refused, last = read_bytes(container(SCHEMA, alert(1), nobody, alert(3)), tmp_path)
    assert isinstance(first, Found)
    assert isinstance(last, Found)
    assert isinstance(refused, Refused)
    assert refused.content == Codec(SCHEMA).encode(nobody)


def test_the_only_alert_of_a_container_is_a_message(tmp_path: Path) -> None:
    content = container(SCHEMA, alert(1))
    (item,) = read_bytes(content, tmp_path)
    assert isinstance(item, Found)
    assert item.message == content


def test_a_message_in_wire_format_keeps_its_id(tmp_path: Path) -> None:
    content = frame(900, Codec(SCHEMA).encode(alert(1)))
    (item,) = read_bytes(content, tmp_path)
    assert isinstance(item, Found)
    assert (item.schema_id, item.message, item.body) == (900, content, content[5:])


@pytest.mark.parametrize(
    ("content", "good", "said"),
    [
        (b"", 0, "neither an Avro container nor in wire format"),
        (b"SIMPLE  =", 0, "neither"),
        (container(SCHEMA, alert(1))[:-20], 0, "cut off"),
        (container(SCHEMA, alert(1)) + b"\x02\x02", 1, "cut off"),
        (container(SCHEMA, alert(1), alert(2)) + b"\x02\x02", 2, "cut off"),
        (container(FOREIGN, {"sourceId": 1}), 0, "no alert of survey lsst"),
        (frame(901, b""), 0, "901.*--schema"),
        (frame(900, b"\x02"), 0, "cut off"),
        (frame(900, Codec(SCHEMA).encode(alert(1)) + b"\x00"), 0, "ends at byte"),
    ],
)
def test_what_is_wrong_is_said_after_what_is_good(
    content: bytes, good: int, said: str, tmp_path: Path
) -> None:
    *found, refused = read_bytes(content, tmp_path)
    assert len(found) == good
    assert all(isinstance(item, Found) for item in found)
    assert isinstance(refused, Refused)
    assert refused.content == content
    with pytest.raises(ValueError, match=said):
        raise ValueError(refused.reason)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    (item,) = read(tmp_path / "gone.avro", survey("lsst"), Codecs())
    assert isinstance(item, Refused)


def test_a_folder_is_searched_and_what_is_left_aside_is_told(tmp_path: Path) -> None:
    for name in ("b.avro", "a.cwf", "README.md"):
        (tmp_path / name).touch()
    wanted, aside = find([tmp_path, tmp_path / "README.md"])
    assert [path.name for path in wanted] == ["a.cwf", "b.avro", "README.md"]
    assert [path.name for path in aside] == ["README.md"]


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("lsst.v9_0.alert", 900),
        ("lsst.v11_1.alert", 1101),
        ("ztf.alert", None),
        ("elasticc.v0_9.alert", None),
    ],
)
def test_rubins_ids_follow_from_the_schemas_name(name: str, number: int | None) -> None:
    space, _, last = name.rpartition(".")
    assert survey_id({"name": name}, "lsst") == number
    assert survey_id({"name": last, "namespace": space}, "lsst") == number


def test_schemas_that_refer_to_each_other_are_put_together(tmp_path: Path) -> None:
    inner: Any = SCHEMA["fields"][1]
    outer = {"type": "record", "name": "lsst.v9_0.alert", "fields": [SCHEMA["fields"][0]]}
    outer["fields"] = [*outer["fields"], {"name": "diaSource", "type": "lsst.v9_0.diaSource"}]
    named = inner["type"] | {"name": "lsst.v9_0.diaSource"}
    (tmp_path / "lsst.v9_0.alert.avsc").write_text(json.dumps(outer))
    (tmp_path / "lsst.v9_0.diaSource.avsc").write_text(json.dumps(named))
    (schema,) = schemas_in(tmp_path)
    assert canonical(schema) == canonical(SCHEMA)


@pytest.mark.parametrize(
    ("pace", "before", "now", "gap"),
    [
        (Pace(), 1.0, 2.0, 0.0),
        (Pace(rate=50.0), None, None, 0.02),
        (Pace(speed=1.0), 1.0, 1.0 + 3.0 / 86_400, 3.0),
        (Pace(speed=10.0), 1.0, 1.0 + 3.0 / 86_400, 0.3),
        (Pace(speed=1.0), 2.0, 1.0, 0.0),
        (Pace(speed=1.0), None, 1.0, 0.0),
        (Pace(speed=1.0, longest_gap=60.0), 1.0, 100.0, 60.0),
    ],
)
def test_an_alert_is_due_as_the_pace_says(
    pace: Pace, before: float | None, now: float | None, gap: float
) -> None:
    assert pace.gap(before, now) == pytest.approx(gap, abs=1e-5)
