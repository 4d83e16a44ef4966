"""A container: many events in one frame, as a tar archive, compressed or not.

The second way that Swinbank (2014, section 7.5) considers; Comet's branch for bulk submission sends
it.  Each regular file is one document, answered in its turn.  Pure.

The archive is read here, by the header that all tar formats share: what the library for it knows
besides (links, sparse files, extended headers) has no place in what a stranger sends.
"""

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator

MAX_DOCUMENTS = 10_000
"""Most documents in a container."""
GROWTH = 16
"""How many times what a frame may hold a container may, unpacked."""
MEMORY = 64 << 20
"""What unpacking may take, besides its result. [byte]"""

_BLOCK = 512
_NAME, _SIZE, _SUM, _TYPE = slice(0, 100), slice(124, 136), slice(148, 156), slice(156, 157)
_MAGIC = slice(257, 262)
_REGULAR = (b"0", b"\0", b"7")
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


def open_container(message: bytes, max_frame: int) -> Iterator[bytes]:
    """Unpack the container *message* now; return its documents, in order, each read when asked for.

    Args:
        message: The container.
        max_frame: Longest document. [byte]

    Raises:
        ContainerError: It is damaged, or holds too much; what came before is good.
    """
    return _documents(_unpacked(message, GROWTH * max_frame), max_frame)


def _documents(archive: bytes, max_frame: int) -> Iterator[bytes]:
    at = found = 0
    while any(header := archive[at : at + _BLOCK]):  # a block of zeros ends it
        size = _size(header)
        at += _BLOCK
        if header[_TYPE] in _REGULAR:
            found += 1
            yield _document(archive[at : at + size], header, size, found, max_frame)
        at += -(-size // _BLOCK) * _BLOCK


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


def _size(header: bytes) -> int:
    """Return the size of the file behind *header*. [byte]"""
    try:
        size, checksum = (int(header[field].strip(b" \0") or b"0", 8) for field in (_SIZE, _SUM))
    except ValueError:
        checksum = size = -1
    if size < 0 or len(header) < _BLOCK or checksum != sum(header) - sum(header[_SUM]) + 8 * ord(" "):
        raise ContainerError("the container is damaged: a file begins with what is no header")
    return size


def _document(document: bytes, header: bytes, size: int, number: int, max_frame: int) -> bytes:
    name = header[_NAME].rstrip(b"\0").decode("utf-8", "replace")
    if number > MAX_DOCUMENTS:
        raise ContainerError(f"the container has more than {MAX_DOCUMENTS} documents")
    if size > max_frame:
        raise ContainerError(f"{name!r} has {size} bytes, the limit is {max_frame}")
    if len(document) < size:
        raise ContainerError(f"the container ends within {name!r}")
    return document
