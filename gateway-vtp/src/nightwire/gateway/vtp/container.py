"""A container: many events in one frame, as a tar archive, compressed or not.

The second way that Swinbank (2014, section 7.5) considers; Comet's branch for bulk submission sends
it.  Each regular file is one document, answered in its turn.  Pure.

Headers are read by the standard library one at a time; its `TarFile` would also follow the links,
sparse files and extended headers of a stranger, which have no place here.
"""

import bz2
import lzma
import tarfile
import zlib
from collections.abc import Callable, Iterator

MAX_DOCUMENTS = 10_000
"""Most documents in a container."""
GROWTH = 16
"""Size of an unpacked container, in longest frames."""
MEMORY = 64 << 20
"""Most memory for unpacking, besides its result. [byte]"""

_MAGIC = slice(257, 262)
_REGULAR = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE)
_COMPRESSED: dict[bytes, Callable[[bytes, int], bytes]] = {
    b"\x1f\x8b": lambda data, limit: zlib.decompressobj(31).decompress(data, limit),
    b"BZh": lambda data, limit: bz2.BZ2Decompressor().decompress(data, limit),
    b"\xfd7zXZ\0": lambda data, limit: lzma.LZMADecompressor(memlimit=MEMORY).decompress(data, limit),
}


class ContainerError(Exception):
    """The container cannot be read, or not any further; the message says why."""


def is_container(message: bytes) -> bool:
    """Say whether *message* is a container rather than a document."""
    return message.startswith(tuple(_COMPRESSED)) or message[_MAGIC] == b"ustar"


class Container(Iterator[bytes]):
    """The documents of an archive, in order, each read when asked for.

    Args:
        archive: Unpacked.
        max_frame: Longest document. [byte]

    Attributes:
        size: Of the archive. [byte]
    """

    def __init__(self, archive: bytes, max_frame: int) -> None:
        self.size, self._documents = len(archive), _documents(archive, max_frame)

    def __next__(self) -> bytes:
        return next(self._documents)


def open_container(message: bytes, max_frame: int) -> Container:
    """Unpack the container *message* now; return its documents.

    Args:
        message: The container.
        max_frame: Longest document. [byte]

    Raises:
        ContainerError: It is damaged, or holds too much; what came before is good.
    """
    return Container(_unpacked(message, GROWTH * max_frame), max_frame)


def _documents(archive: bytes, max_frame: int) -> Iterator[bytes]:
    at = found = 0
    while any(header := archive[at : at + tarfile.BLOCKSIZE]):  # a block of zeros ends it
        member = _member(header)
        at += tarfile.BLOCKSIZE
        if member.type in _REGULAR:
            found += 1
            yield _document(archive[at : at + member.size], member, found, max_frame)
        at += -(-member.size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE


def _unpacked(message: bytes, limit: int) -> bytes:
    for magic, unpack in _COMPRESSED.items():
        if message.startswith(magic):
            try:
                message = unpack(message, limit + 1)
            except (zlib.error, lzma.LZMAError, OSError, EOFError) as error:
                raise ContainerError(f"the container cannot be unpacked: {error}") from error
            break
    if len(message) > limit:
        raise ContainerError(f"the container holds more than {limit} bytes")
    if message[_MAGIC] != b"ustar":
        raise ContainerError("the container is no tar archive")
    return message


def _member(header: bytes) -> tarfile.TarInfo:
    """Return name, type and size of the file behind *header*."""
    try:
        member = tarfile.TarInfo.frombuf(header, "utf-8", "replace")
    except tarfile.HeaderError as error:
        raise ContainerError("the container is damaged: a file begins with what is no header") from error
    if member.size < 0:
        raise ContainerError("the container is damaged: a file of negative size")
    return member


def _document(document: bytes, member: tarfile.TarInfo, number: int, max_frame: int) -> bytes:
    if number > MAX_DOCUMENTS:
        raise ContainerError(f"the container has more than {MAX_DOCUMENTS} documents")
    if member.size > max_frame:
        raise ContainerError(f"{member.name!r} has {member.size} bytes, the limit is {max_frame}")
    if len(document) < member.size:
        raise ContainerError(f"the container ends within {member.name!r}")
    return document
