"""The packets that authors send."""

from nightwire.benchmarks.workers.vtp.packets import listing_5, real_packets, renamed
from nightwire.gateway import author_packet


def test_every_packet_that_is_sent_is_valid_and_an_event_of_its_own() -> None:
    for packets in (real_packets(), listing_5()):
        found = [author_packet(document) for document in packets.fresh(300, "run")]
        assert [one.ivorn.rpartition("#")[2] for one in found] == [f"run-{number}" for number in range(300)]
        assert len({one.hash for one in found}) == 300


def test_an_event_is_renamed_and_not_what_it_cites() -> None:
    document = b"<v:VOEvent role='test' ivorn='ivo://a/b#c'><EventIVORN ivorn='ivo://a/b#d'/></v:VOEvent>"
    assert renamed(document, "e").startswith(
        b"<v:VOEvent role='test' ivorn=\"ivo://a/b#e\"><EventIVORN ivorn='ivo"
    )
