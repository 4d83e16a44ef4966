"""A relay and its receivers, with a real Kafka and real multicast on the loopback."""

import secrets
import signal
from pathlib import Path
from typing import Any

import pytest

from nightwire.consumers import AlertReader
from tests._multicast import (
    Receiver,
    by_partition,
    free_group,
    make_topic,
    relay,
    wait_for,
    write_alerts,
)

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(240)]


@pytest.fixture
def topic(kafka: str) -> str:
    """Return a topic of two partitions that is this test's alone."""
    return make_topic(kafka, f"multicast-{secrets.token_hex(4)}")


def receiver(kafka: str, topic: str, group: str, wanted: int, **more: Any) -> Receiver:
    """Start a receiver, and wait until it hears the relay."""
    reader = AlertReader(
        topic,
        bootstrap=kafka,
        multicast=group,
        interface="127.0.0.1",
        timeout=60,
        **{"survey": "sim", **more},
    )
    one = Receiver(reader, wanted)
    wait_for(lambda: reader.way == "multicast" or not one.is_alive())
    return one


def test_receivers_get_each_alert_once_in_order_by_multicast(kafka: str, topic: str, tmp_path: Path) -> None:
    group = free_group()
    with relay(tmp_path / "log", kafka, topic, group):
        receivers = [receiver(kafka, topic, group, 1000) for _ in range(4)]
        write_alerts(kafka, topic, range(1000))
        for one in receivers:
            one.join(60)
            assert sorted(one.places) == sorted(set(one.places))
            assert sum(map(len, by_partition(one.places).values())) == 1000
            assert all(offsets == sorted(offsets) for offsets in by_partition(one.places).values())
            assert one.ways[0] == "multicast"
