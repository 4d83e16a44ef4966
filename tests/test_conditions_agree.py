"""A subscriber with a condition gets what a filter of the same condition passes, and no more."""

import copy
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from filters.tests.conftest import blank
from filters.tests.helpers import random_alerts
from filters.tests.helpers.random_conditions import Conditions
from nightwire.consumers import AlertReader
from nightwire.core.kafka import Writer, producer
from nightwire.filters.decision.engine_state import EngineState
from nightwire.filters.evaluation.worker import Task, run
from nightwire.filters.language import compile_sql
from nightwire.filters.model import filter_set
from nightwire.filters.model.live_filter import LiveFilter
from nightwire.filters.model.messages import judged_batch
from nightwire.filters.model.offsets import OffsetRange
from nightwire.schemas import SIM_ALERT_ID, Codec, sim_alert_schema, wire

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

CONDITIONS = [
    *("newer > 3", "newer IS NULL", "brightnes < 3", "magnitude < 20 AND newer IS NOT NULL", "TRUE"),
    *("prvDiaSources.psfFlux > 3", "diaSource.band + 1 > 3", "psfFlux * 9223372036854775807 > 0"),
    *("POWER(psfNdata + 2, 99999) > 1", "1 / (visit - 7) > 0", "snr > 5 OR prvDiaSources.ra IS NULL"),
]
"""Of fields that only some schemas have, or none, and such as fail on some alerts."""


def other_schema() -> dict[str, Any]:
    """Return a later version of the schema, with a field more in its source."""
    schema = copy.deepcopy(sim_alert_schema())
    (source,) = [one for one in schema["fields"] if one["name"] == "diaSource"]
    kind = source["type"] if isinstance(source["type"], dict) else source["type"][1]
    kind["fields"].append({"name": "newer", "type": ["null", "double"], "default": None})
    return schema


def whole(some: dict[str, Any]) -> dict[str, Any]:
    """Return an alert with the odd values of a random one, where the schema has such fields."""
    empty: dict[str, Any] = blank(sim_alert_schema(), {})
    source = empty["diaSource"]

    def filled(one: dict[str, Any]) -> dict[str, Any]:
        fits = {name: value for name, value in one.items() if name in source and value is not None}
        return source | fits | {"psfNdata": (fits.get("psfNdata") or 0) % (1 << 31)}  # of 32 bits

    earlier = some["prvDiaSources"]
    return empty | {
        "diaSourceId": some["diaSourceId"],
        "diaSource": filled(some["diaSource"]),
        "prvDiaSources": None if earlier is None else [*map(filled, earlier)],
    }


def container(alert: dict[str, Any], schema: dict[str, Any]) -> bytes:
    """Return an alert as an object container, as ZTF sends them."""
    file = io.BytesIO()
    fastavro.writer(file, fastavro.parse_schema(schema), [alert])
    return file.getvalue()


def records() -> list[bytes]:
    """Return alerts of two versions of a schema, some in containers, and records that are none."""
    codec, newer = Codec(sim_alert_schema()), other_schema()
    found = []
    for number, some in enumerate(random_alerts.alerts(7, 300)):
        alert = whole(some)
        if number % 5 == 0:
            source = alert["diaSource"] | {"newer": float(number % 7)}
            found.append(container(alert | {"diaSource": source}, newer))
        elif number % 7 == 0:
            found.append(container(alert, sim_alert_schema()))
        else:
            found.append(wire.frame(SIM_ALERT_ID, codec.encode(alert)))
    return [*found[:100], b"garbage", found[0][:40], b"", *found[100:]]


@pytest.fixture(scope="module")
def topic(kafka: str) -> str:
    """Return the topic of `records`, in one partition."""
    writer = Writer(producer(kafka))
    for value in records():
        writer.write("alerts.sim", value, partition=0)
    writer.flush()
    return "alerts.sim"


def by_filters(kafka: str, state: Path, conditions: Sequence[str]) -> list[set[int]]:
    """Return the offsets that pass filters of these conditions, as the engine judges them."""
    filters = [
        LiveFilter(f"o{n}", "f", 1, "sim", text, "", program=compile_sql(text, "sim").dumps())
        for n, text in enumerate(conditions)
    ]
    EngineState(state).keep_filters(1, filter_set.dump(filters))
    work = (OffsetRange("alerts.sim", 0, 0, len(records())),)
    task = Task(kafka, "http://127.0.0.1:9", str(state), 1, work, sandbox="none")
    found = judged_batch(pa.Table.from_batches(list(run(task))))
    return [
        {found.alerts[at].offset for at in found.alert_index[found.filter_index == number]}
        for number in range(len(conditions))
    ]


def test_a_subscriber_gets_what_a_filter_passes(kafka: str, topic: str, tmp_path: Path) -> None:
    conditions = [*CONDITIONS, *(Conditions(seed).condition().sql for seed in range(12))]
    texts = [one for one in conditions if one is not None]
    passed = by_filters(kafka, tmp_path, texts)
    differ = {}
    for text, expected in zip(texts, passed, strict=True):
        with AlertReader(topic, where=text, bootstrap=kafka, start="beginning", follow=False) as reader:
            found = {one.offset for batch in reader.batches(size=64) for one in batch}
        if found != expected:
            differ[text] = (sorted(found - expected)[:5], sorted(expected - found)[:5])
        whole = reader.count + reader.filtered + reader.faulted + reader.undecodable
        assert whole == len(records()), text
    assert not differ
    assert sum(map(len, passed)) > len(texts)
