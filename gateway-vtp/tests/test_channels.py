"""VOEvents by condition: the gateway copies them to channels, and readers follow these."""

from collections.abc import Callable
from typing import Any

import pytest

from nightwire.consumers import AlertReader
from nightwire.gateway import Author, Submission
from nightwire.gateway.net.addresses import Address
from nightwire.multicast.channel_admin import make_channel, remove_channel
from nightwire.schemas.topics import VOEVENTS
from tests._channels import ends, identity
from tests._multicast import Receiver, by_partition
from tests._voevents import packet
from tests._waiting import until

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

WAY = "channel seen of voevents"


def test_a_reader_with_a_condition_gets_by_a_channel_what_it_gets_without(
    start_gateway: Callable[..., Any], ivorns: Callable[[int], list[str]], kafka: str
) -> None:
    names = ivorns(5000)
    where = f"role = 'observation' AND id LIKE '{names[0].partition('#')[0]}#%' AND author = 'ivo://test'"
    how: dict[str, Any] = {"bootstrap": kafka, "registry": "http://127.0.0.1:9", "where": where}
    make_channel(kafka, VOEVENTS, "seen", "role = 'observation'")
    author = Author(Address("127.0.0.1", start_gateway().authors))
    begin = ends(kafka, VOEVENTS)
    reader = Receiver(AlertReader(VOEVENTS, start="live", timeout=60, **how).open(), 10**9)
    sent, ways = list[str](), list[str]()

    def send_two() -> bool:
        """Send one that is wanted and one that is not; return whether the channel is read."""
        ways.append(reader.reader.way)
        for role in ("observation", "test"):
            sent.append(names[len(sent)])
            assert author.send(Submission("x", packet(sent[-1], role=role))).verdict == "ack"
        return ways.count(WAY) > 40

    until(send_two, tick=0.0)
    reader.wanted = len(sent) // 2 + 1
    send_two()
    reader.join(60)
    remove_channel(kafka, VOEVENTS, "seen")
    with AlertReader(VOEVENTS, start="beginning", follow=False, channel=False, **how) as plain:
        wanted = [one for one in plain if one.offset >= begin[one.topic, one.partition]]
    assert {one.alert["ivorn"] for one in wanted} == {*sent[::2]}
    assert sorted(map(identity, reader.alerts)) == sorted(map(identity, wanted))
    assert all(offsets == sorted(offsets) for offsets in by_partition(reader.places).values())
    assert reader.ways[-1] == WAY
