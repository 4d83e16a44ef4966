"""A relay and receivers on a LAN of namespaces: datagrams are lost, and the LAN is cut."""

from collections.abc import Iterator

import pytest

from nightwire.benchmarks.model.scenario import Context, Size
from nightwire.benchmarks.scenarios.multicast.network import checked
from nightwire.benchmarks.scenarios.multicast.site import Site

pytestmark = [pytest.mark.kafka, pytest.mark.lan, pytest.mark.slow, pytest.mark.timeout(300)]

HOSTS = 4


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Yield Kafka and four hosts on a LAN, and a fifth that joins nothing."""
    one = Site(Context(tmp_path_factory.mktemp("site"), Size(0, 1, 1.0)), HOSTS + 1)
    yield one
    one.close()


@pytest.mark.parametrize("share", [0.0, 0.01, 0.05])
def test_whatever_is_lost_each_record_comes_once_in_order(site: Site, share: float) -> None:
    topic, group = site.topic(partitions=2), site.group()
    with site.relay(topic, group), site.receivers(range(HOSTS), topic, group, 3000) as receivers:
        site.lose(range(HOSTS), share, group)
        site.write(topic, 3000, 1000, 2000.0)
        found = checked(receivers, 3000)
        site.lose(range(HOSTS), 0.0, group)
    assert {one["way"] for one in found} == {"multicast"}
    assert all(one["repaired"] > 0 for one in found) == (share > 0)


def test_where_multicast_is_blocked_receivers_read_kafka_and_come_back(site: Site) -> None:
    topic, group = site.topic(), site.group()
    with site.relay(topic, group), site.receivers(range(HOSTS), topic, group, 900) as receivers:
        site.write(topic, 300, 1000, 2000.0)
        site.lose(range(HOSTS), 1.0, group)
        site.write(topic, 300, 1000, 60.0)  # for longer than silence is borne
        site.lose(range(HOSTS), 0.0, group)
        site.write(topic, 300, 1000, 100.0)
        found = checked(receivers, 900)
    assert all(one["ways"] == ["multicast", "kafka", "multicast"] for one in found)


def test_who_joined_nothing_is_sent_nothing(site: Site) -> None:
    topic, group = site.topic(), site.group()
    assert site.lan is not None
    with site.relay(topic, group), site.receivers([0], topic, group, 1000) as receivers:
        before = site.lan.received(HOSTS)
        site.write(topic, 1000, 1000, 2000.0)
        checked(receivers, 1000)
        assert site.lan.received(HOSTS) - before < 0.01 * 1000 * 1000
