from pathlib import Path

from nightwire.gateway import author_packet, voevent_fields
from nightwire.gateway.voevent.samples import samples, write_samples


def test_samples_are_valid_and_varied_and_the_same_each_time() -> None:
    packets = [author_packet(document) for _, document in samples(200)]
    assert len({packet.hash for packet in packets}) == 200
    assert {packet.role for packet in packets} == {"observation", "prediction", "utility", "test"}
    fields = [voevent_fields(packet) for packet in packets]
    assert sum(one["ra"] is not None for one in fields) > 150
    known = {packet.ivorn for packet in packets}
    cited = [citation["ivorn"] for one in fields for citation in one["citations"]]
    assert len(cited) > 20
    assert set(cited) <= known
    assert list(samples(20)) == list(samples(200))[:20]


def test_samples_are_written_one_file_each(tmp_path: Path) -> None:
    files = write_samples(tmp_path / "new" / "folder", 3)
    assert [file.name for file in files] == ["sample-00000.xml", "sample-00001.xml", "sample-00002.xml"]
    assert [file.read_bytes() for file in files] == [document for _, document in samples(3)]
