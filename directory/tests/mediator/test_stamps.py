"""Stamps over HTTP, of alerts in a real Kafka."""

import io
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import pytest
from astropy.io import fits

from nightwire.core.kafka import producer
from nightwire.schemas import SIM_ALERT_ID, Codec, sim_alert_schema
from nightwire.schemas.wire import frame
from tests._alerts import empty

pytestmark = pytest.mark.kafka

Topic = Callable[..., str]


def fits_bytes(level: float) -> bytes:
    file = io.BytesIO()
    fits.PrimaryHDU(np.full((30, 30), level, np.float32)).writeto(file)
    return file.getvalue()


def alert(number: int) -> bytes:
    """Return the record of an alert with one stamp."""
    made = empty(sim_alert_schema()) | {"cutoutScience": fits_bytes(number)}
    return frame(SIM_ALERT_ID, Codec(sim_alert_schema()).encode(made))


@pytest.fixture
def alerts(kafka: str, fresh_topic: Topic) -> str:
    """Return a topic with alerts 0 to 4, and a record that is none."""
    name = fresh_topic()
    client = producer(kafka)
    for value in [*map(alert, range(5)), b"no alert"]:
        client.produce(name, value, partition=0, headers=[("survey", b"sim")])
    assert client.flush(60) == 0
    return name


def get(here: Any, topic: str, offset: int, name: str, partition: int = 0) -> httpx.Response:
    found: httpx.Response = here.http.get(f"/topics/{topic}/records/{partition}/{offset}/stamps/{name}")
    return found


def test_a_stamp_is_that_of_the_alert(here: Any, alerts: str) -> None:
    for offset in (3, 0, 4):
        found = get(here, alerts, offset, "science.fits")
        assert (found.status_code, found.headers["content-type"]) == (200, "image/fits")
        assert found.content == fits_bytes(offset)
    assert get(here, alerts, 1, "science.png").content.startswith(b"\x89PNG")
    assert here.count("nightwire_mediator_records_total", direction="out", topic=alerts) == 4


@pytest.mark.parametrize(
    ("offset", "name", "status", "why"),
    [
        (1, "difference.fits", 404, "no stamp difference; it has: science"),
        (1, "science.gif", 404, "science.gif is no stamp: NAME.fits or NAME.png"),
        (99, "science.fits", 404, "out of range"),
        (5, "science.fits", 422, ""),
    ],
)
def test_what_is_not_there_says_so(
    here: Any, alerts: str, offset: int, name: str, status: int, why: str
) -> None:
    found = get(here, alerts, offset, name)
    assert found.status_code == status
    assert why in found.text


def test_a_topic_that_is_not_there_says_so(here: Any) -> None:
    assert get(here, "no.such.topic", 0, "science.fits").status_code == 404
