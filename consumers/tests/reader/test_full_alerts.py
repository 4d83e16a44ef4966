"""Stamps of alerts that came without them, fetched from where the alerts lie whole."""

import itertools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nightwire.consumers import AlertReader, ReceivedAlert
from nightwire.consumers.formats.stamp_folder import StampFolder
from nightwire.schemas import Codec, StampError, derived_schema, sim_alert_schema, survey
from nightwire.schemas.avro.container import container_block, container_head

Encode = Callable[..., bytes]
Write = Callable[..., None]

numbers = itertools.count()
STAMPS = set(survey("sim").description.stamps.values())
SYNC = bytes(16)


@pytest.fixture
def whole(bootstrap: str, encode: Encode, write: Write) -> str:
    """Return a topic with whole alerts 0 to 9 in one of its partitions."""
    topic = f"whole.{os.getpid()}.{next(numbers)}"
    write(bootstrap, topic, [encode(number) for number in range(10)], partition=0)
    return topic


@pytest.fixture
def lighter(make_alert: Callable[..., dict[str, Any]]) -> Callable[[int], bytes]:
    """Return a function that gives the message of an alert without stamps, as transforms do."""
    codec = Codec(derived_schema(sim_alert_schema(), STAMPS))
    head = container_head(json.dumps(codec.schema).encode(), SYNC)

    def message(number: int) -> bytes:
        alert = {name: value for name, value in make_alert(number).items() if name not in STAMPS}
        return head + container_block(codec.encode(alert), SYNC)

    return message


def read(bootstrap: str, topic: str) -> AlertReader:
    return AlertReader(topic, bootstrap=bootstrap, follow=False, timeout=60.0)


def sent(bootstrap: str, write: Write, message: bytes, **origin: object) -> str:
    """Write a message with an origin; return its topic."""
    topic = f"lighter.{os.getpid()}.{next(numbers)}"
    headers = [("survey", b"sim"), *((name, str(value).encode()) for name, value in origin.items())]
    write(bootstrap, topic, [message], partition=0, headers=headers)
    return topic


def own_stamp(alert: ReceivedAlert, make_alert: Callable[..., dict[str, Any]]) -> bool:
    number = alert.alert["diaSourceId"]
    return alert.stamps["science"].fits == make_alert(number)["cutoutScience"]


def test_stamps_are_fetched_from_where_an_alert_first_lay(
    bootstrap: str, whole: str, lighter: Callable[[int], bytes], write: Write, make_alert: Any
) -> None:
    topic = sent(bootstrap, write, lighter(7), topic=whole, partition=0, offset=7)
    with read(bootstrap, topic) as reader:
        (alert,) = list(reader)
        assert alert.came_without_stamps
        assert "cutoutScience" not in alert.alert
        assert own_stamp(alert, make_alert)
        assert reader.full(alert) is alert  # only what a relay sent is another form of the same record


def test_stamps_that_a_relay_left_out_are_fetched_from_the_same_place(
    bootstrap: str, encode: Encode, write: Write, make_alert: Any
) -> None:
    """What comes by multicast has the place of the whole in Kafka, and the header ``lite``."""
    topic = f"relayed.{os.getpid()}.{next(numbers)}"
    write(bootstrap, topic, [encode(5)], partition=0, headers=[("survey", b"sim"), ("lite", b"1")])
    with read(bootstrap, topic) as reader:
        (alert,) = list(reader)
        alert.alert["cutoutScience"] = None  # as a datagram has it
        assert own_stamp(alert, make_alert)


def test_they_are_fetched_after_the_reader_has_left(
    bootstrap: str, whole: str, lighter: Callable[[int], bytes], write: Write, make_alert: Any
) -> None:
    topic = sent(bootstrap, write, lighter(3), topic=whole, partition=0, offset=3)
    with read(bootstrap, topic) as reader:
        (alert,) = list(reader)
    assert own_stamp(alert, make_alert)


def test_an_alert_that_has_its_stamps_is_not_fetched(bootstrap: str, whole: str, write: Write) -> None:
    with read(bootstrap, whole) as reader:
        alerts = list(reader)
    assert not any(one.came_without_stamps for one in alerts)
    assert all(set(one.stamps) == {"science"} for one in alerts)


def test_stamps_that_are_gone_say_so(
    bootstrap: str, whole: str, lighter: Callable[[int], bytes], write: Write, tmp_path: Path
) -> None:
    topic = sent(bootstrap, write, lighter(7), topic=whole, partition=0, offset=700)
    with read(bootstrap, topic) as reader:
        (alert,) = list(reader)
        with pytest.raises(StampError, match=r"lighter.*\[0\]@0 cannot be fetched from whole.*\[0\]@700: "):
            _ = alert.stamps
        assert "cannot be fetched" in alert._repr_html_()
        folder = StampFolder(tmp_path / "stamps")
        folder.save(alert)
    assert (folder.saved, folder.broken) == (0, 1)
