"""What the producer's tests share: a simulated visit and the compressors of its figures."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import lz4.frame
import pytest
import zstandard

from nightwire.producer import Sky, VisitLog, Visits
from nightwire.producer.simulation.sky import visit_id
from nightwire.schemas import Codec, sim_alert_schema

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)

Alerts = list[dict[str, Any]]


@pytest.fixture(scope="session")
def play() -> Callable[..., list[Alerts]]:
    """Return a function that plays visits of a seed, without any Kafka."""

    def visits(alerts: int, *, visits: int = 1, seed: int = 7) -> list[Alerts]:
        log = VisitLog(seed, NOON)
        field = Visits(Sky(seed, alerts), log)
        played = []
        for number in range(visits):
            log.open(NOON, visit_id(NOON) + number)
            played.append(list(field.alerts()))
        return played

    return visits


@pytest.fixture(scope="session")
def visit(play: Callable[..., list[Alerts]]) -> Alerts:
    """Return a visit of 400 simulated alerts."""
    return play(400)[0]


@pytest.fixture(scope="session")
def codec() -> Codec:
    """Return the codec of simulated alerts."""
    return Codec(sim_alert_schema())


@pytest.fixture(scope="session")
def compressors() -> Mapping[str, Callable[[bytes], bytes]]:
    """Return lz4, and zstd at level 3."""
    return {"lz4": lz4.frame.compress, "zstd": zstandard.ZstdCompressor(level=3).compress}
