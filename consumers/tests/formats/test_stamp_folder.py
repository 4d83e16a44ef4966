"""Stamps in a folder."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Message

from nightwire.consumers.alert.record_decoder import RecordDecoder
from nightwire.consumers.formats.stamp_folder import StampFolder, file_stem
from nightwire.schemas import SIM_ALERT_ID, AlertDecoder, Codec, SchemaRegistry
from nightwire.schemas.wire import frame


@pytest.mark.parametrize(
    ("alert_id", "stem"),
    [
        (17, "17_science"),
        ("ivo://a.b/c#d e", "ivo_a.b_c_d_e_science"),
        ("../../etc/passwd", "_.._etc_passwd_science"),
        (".hidden", "hidden_science"),
        ("é", "__science"),
    ],
)
def test_file_names_are_safe(alert_id: object, stem: str) -> None:
    assert file_stem(alert_id, "science") == stem


def test_a_bad_stamp_is_a_warning_by_name_and_the_rest_is_saved(
    tmp_path: Path, codec: Codec, make_alert: Callable[..., dict[str, Any]], caplog: pytest.LogCaptureFixture
) -> None:
    alert = make_alert(5) | {
        "cutoutTemplate": b"\xff\xd8\xff\xe0JFIF",
        "cutoutDifference": b"SIMPLE  = T cut off",
    }
    message = Message(
        topic="alerts.sim", partition=0, offset=1, value=frame(SIM_ALERT_ID, codec.encode(alert))
    )
    folder = StampFolder(tmp_path / "new" / "stamps")
    with caplog.at_level(logging.WARNING):
        folder.save(RecordDecoder(AlertDecoder(SchemaRegistry(None))).decode(message))
    names = sorted(path.name for path in (tmp_path / "new" / "stamps").iterdir())
    assert names == ["5_difference.fits", "5_science.fits", "5_science.png", "5_template.jpg"]
    assert (folder.saved, folder.broken) == (1, 2)
    assert [text.split(":")[0] for text in caplog.messages] == ["stamp 5_difference", "stamp 5_template"]
    assert (tmp_path / "new/stamps/5_science.fits").read_bytes() == alert["cutoutScience"]
