"""Simulated alerts, small and whole, and what puts them into Kafka."""

import io
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from astropy.io import fits

from nightwire.core.kafka import Writer, producer
from nightwire.schemas import SIM_ALERT_ID, Codec, sim_alert_schema
from nightwire.schemas.wire import frame
from tests._alerts import empty


def fits_bytes(image: np.ndarray[Any, Any]) -> bytes:
    """Return a FITS file with *image*."""
    file = io.BytesIO()
    fits.PrimaryHDU(image).writeto(file)
    return file.getvalue()


@pytest.fixture(scope="session")
def codec() -> Codec:
    """Return the codec of simulated alerts."""
    return Codec(sim_alert_schema())


@pytest.fixture(scope="session")
def make_alert() -> Callable[..., dict[str, Any]]:
    """Return a function that makes the simulated alert of a number, with a stamp."""

    def make(number: int, **source: Any) -> dict[str, Any]:
        alert = empty(sim_alert_schema())
        image = np.random.default_rng(number).normal(100.0, 5.0, (30, 30)).astype(np.float32)
        alert["diaSourceId"] = alert["diaSource"]["diaSourceId"] = number
        alert["diaSource"] |= {
            "diaObjectId": 1000 + number,
            "midpointMjdTai": 61000.0,
            "ra": 10.5,
            "dec": -20.25,
        }
        alert["diaSource"] |= {"band": "r", "psfFlux": 3631.0, "psfFluxErr": 363.0, "visit": 7} | source
        return alert | {"cutoutScience": fits_bytes(image)}

    return make


@pytest.fixture(scope="session")
def encode(codec: Codec, make_alert: Callable[..., dict[str, Any]]) -> Callable[..., bytes]:
    """Return a function that gives the message of a simulated alert of a number."""

    def message(number: int, **source: Any) -> bytes:
        return frame(SIM_ALERT_ID, codec.encode(make_alert(number, **source)))

    return message


@pytest.fixture
def quick_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let members of groups notice in a third of a second who joined or left, not in three."""
    monkeypatch.setenv("KAFKA_HEARTBEAT_INTERVAL_MS", "300")


@pytest.fixture(scope="module")
def write() -> Callable[..., None]:
    """Return a function that writes values to a topic and waits until they are there."""

    writers: dict[str, Writer] = {}  # a client takes its time to connect

    def put(bootstrap: str, topic: str, values: Iterable[bytes], **how: Any) -> None:
        if bootstrap not in writers:
            writers[bootstrap] = Writer(producer(bootstrap))
        writer = writers[bootstrap]
        for value in values:
            writer.write(topic, value, **{"headers": [("survey", b"sim")]} | how)
        writer.flush()

    return put
