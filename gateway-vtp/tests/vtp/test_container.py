"""Containers: what Comet's branch for bulk submission sends, and what a stranger might."""

import bz2
import gzip
import io
import lzma
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightwire.gateway.vtp.container import ContainerError, is_container, open_container

LIMIT = 10_000


def archive(*documents: bytes, mode: str = "w", form: int = tarfile.PAX_FORMAT) -> bytes:
    """Return a tar archive of *documents*, with folders and links among them."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode=mode, format=form) as tar:  # type: ignore[call-overload]
        for number, document in enumerate(documents):
            folder, link = tarfile.TarInfo(f"night-{number}"), tarfile.TarInfo("latest.xml")
            folder.type, link.type, link.linkname = tarfile.DIRTYPE, tarfile.SYMTYPE, "/etc/passwd"
            tar.addfile(folder)
            name = (
                # too long for one header: extended headers come before it
                f"night-{number}/{'é' * 60}.xml"
            )
            member = tarfile.TarInfo(name)
            member.size = len(document)
            tar.addfile(member, io.BytesIO(document))
            tar.addfile(link)
    return written.getvalue()


@given(
    st.lists(st.binary(max_size=2000), min_size=1, max_size=5),
    st.sampled_from(["w", "w:gz", "w:bz2", "w:xz"]),
    st.sampled_from([tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]),
)
def test_documents_come_out_as_they_went_in(documents: list[bytes], mode: str, form: int) -> None:
    message = archive(*documents, mode=mode, form=form)
    assert is_container(message)
    assert list(open_container(message, LIMIT)) == documents


def test_documents_are_no_containers() -> None:
    for message in (b"", b"<VOEvent/>", b"<" * 1000, b"<?xml version='1.0'?>" + b"ustar" * 100):
        assert not is_container(message)


def test_what_is_in_order_comes_out_before_what_is_not() -> None:
    good = archive(b"<a/>", b"<b/>")
    damaged = good[: good.rindex(b"ustar") - 257] + b"x" * 512
    found = open_container(damaged, LIMIT)
    assert [next(found), next(found)] == [b"<a/>", b"<b/>"]
    with pytest.raises(ContainerError, match="what is no header"):
        next(found)


def test_limits_to_what_a_container_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ContainerError, match="has 10001 bytes, the limit is 10000"):
        list(open_container(archive(b"x" * 10_001), LIMIT))
    monkeypatch.setattr("nightwire.gateway.vtp.container.MAX_DOCUMENTS", 2)
    with pytest.raises(ContainerError, match="more than 2 documents"):
        list(open_container(archive(b"1", b"2", b"3"), LIMIT))
    with pytest.raises(ContainerError, match="ends within"):
        list(open_container(archive(b"x" * 9000)[:6000], LIMIT))


@pytest.mark.slow
@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_a_bomb_is_unpacked_no_further_than_its_limit(compress: object) -> None:
    assert callable(compress)
    bomb = compress(bytes(50_000_000))
    with pytest.raises(ContainerError, match="more than 160000 bytes"):
        list(open_container(bomb, LIMIT))
    with pytest.raises(ContainerError, match="no tar archive"):
        list(open_container(compress(b"only a text"), LIMIT))


@given(
    st.binary(max_size=1000), st.sampled_from([b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"\0" * 257 + b"ustar"])
)
def test_garbage_is_refused_and_nothing_else_happens(garbage: bytes, magic: bytes) -> None:
    with pytest.raises(ContainerError):
        list(open_container(magic + garbage, LIMIT))
