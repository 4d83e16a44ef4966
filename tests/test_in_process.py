"""A reader in the process that writes: from memory, and from Kafka what others write."""

import pytest

from tests._channels import TOPIC, Load, Member, ends, identity, plain, source
from tests._multicast import by_partition, write_alerts
from tests._waiting import until

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(240)]


def test_what_is_written_here_is_read_from_memory_and_the_rest_from_kafka(
    kafka: str, registry_url: str
) -> None:
    begin = ends(kafka)
    with source(kafka, channels=0) as write:
        one = Member(kafka, registry_url)
        with Load(write):
            until(lambda: one.reader.way == "memory")
            while one.reader.way == "memory":  # until it is left to the topic for a while
                write_alerts(kafka, TOPIC, range(1, 30), flux=95.0)
        wanted = plain(kafka, registry_url, begin)
        until(lambda: len(one.places) >= len(wanted))
        one.leave()
    assert all(offsets == sorted(offsets) for offsets in by_partition(one.places).values())
    assert sorted(map(identity, one.alerts)) == sorted(map(identity, wanted))
