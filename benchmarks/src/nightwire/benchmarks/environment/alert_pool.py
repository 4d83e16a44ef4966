"""Alerts to send: a pool made before the clock starts, and the patches that make each one new."""

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nightwire.schemas import SIM_ALERT_ID, Codec, sim_alert_schema, survey
from nightwire.schemas.wire import frame

Alert = dict[str, Any]

POOL = 2_000
"""Distinct alerts; beyond them stamps and histories repeat, ids, times and positions do not."""
STAMPS = ("cutoutDifference", "cutoutScience", "cutoutTemplate")
ON_DISK = 130_000
"""An alert in Kafka, uncompressed. [byte]"""
IN_POOL = 600_000
"""An alert of the pool. [byte]"""
SEED = 20261
START = datetime(2026, 1, 1, tzinfo=UTC)
FIRST_VISIT = 2026_0101_00001
FIRST_ID = 1 << 60
DAY = 86_400.0
DRIFT = 1e-7
"""From one alert to the next. [deg]"""


@dataclass(frozen=True)
class ReadyMessage:
    """What goes into Kafka: key and value."""

    key: bytes
    value: bytes


def make_pool(count: int) -> list[Alert]:
    """Return min(*count*, `POOL`) distinct simulated alerts, of real sizes and histories."""
    # brings NumPy, which those who only patch do without
    from nightwire.producer import Sky, VisitLog, Visits

    log = VisitLog(SEED, START)
    log.open(START, FIRST_VISIT)
    return list(Visits(Sky(SEED, min(count, POOL)), log).alerts())


def pool_memory(count: int) -> int:
    """Return what the pool for *count* alerts takes: dictionaries and bytes. [byte]"""
    return min(count, POOL) * IN_POOL


def save_pool(pool: Sequence[Alert], path: Path) -> None:
    """Write *pool* to *path*, for other processes of the same run."""
    path.write_bytes(pickle.dumps(list(pool), pickle.HIGHEST_PROTOCOL))


def load_pool(path: Path) -> list[Alert]:
    """Return the pool that this run has written to *path*."""
    pool: list[Alert] = pickle.loads(path.read_bytes())  # noqa: S301  (this run's own file)
    return pool


def ready_messages(pool: Sequence[Alert]) -> list[ReadyMessage]:
    """Return *pool* as the messages that Kafka would get."""
    codec, sim = Codec(sim_alert_schema()), survey("sim")
    return [ReadyMessage(sim.key(alert), frame(SIM_ALERT_ID, codec.encode(alert))) for alert in pool]


def without_stamps(alert: Alert) -> Alert:
    """Return *alert* with null for each stamp."""
    return alert | dict.fromkeys(STAMPS)


def alert_of_mean_size(pool: Sequence[Alert]) -> Alert:
    """Return the alert of *pool* whose size is closest to the mean."""
    codec = Codec(sim_alert_schema())
    sizes = [len(codec.encode(alert)) for alert in pool]
    mean = sum(sizes) / len(sizes)
    _distance, place = min((abs(size - mean), place) for place, size in enumerate(sizes))
    return pool[place]


def patched(pool: Sequence[Alert], count: int, *, visit: int, first: int = 0) -> Iterator[Alert]:
    """Yield *count* alerts of *visit*, cycling through *pool*; all ids, times and positions differ.

    Args:
        pool: Alerts to begin with; they are not changed.
        count: How many.
        visit: Number of the visit.
        first: Number of the first alert; later calls go on after it.
    """
    for number in range(first, first + count):
        yield patch(pool[number % len(pool)], number, visit)


def patch(alert: Alert, number: int, visit: int) -> Alert:
    """Return *alert* with id, visit, time and position of alert *number*; the rest is shared."""
    source = alert["diaSource"]
    name = FIRST_ID + number
    new = source | {
        "diaSourceId": name,
        "visit": visit,
        "midpointMjdTai": source["midpointMjdTai"] + number * 1e-3 / DAY,
        "ra": (source["ra"] + number * DRIFT) % 360.0,
        "dec": source["dec"] * (1.0 - DRIFT),
    }
    return alert | {"diaSourceId": name, "diaSource": new}
