"""Detached OpenPGP signatures in a document: where they stand, which bytes they sign.  Pure.

Two layouts are in use; a signature is a comment after the root element in both.

- As documented with Comet in 2012 (see Swinbank 2014, section 6.1.2): what is signed is the root
  element, from ``<`` to ``>``; in the signature ``-----`` is written ``=====``, as no comment may
  hold ``--``.
- As Comet's unreleased code does it: what is signed is the XML declaration and the root element,
  with nothing between them; in the signature ``^`` is written ``\\^``, and ``-`` is written ``^``.

The first is written, both are read.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from nightwire.gateway.voevent.packet import element_bytes

MAX_SIGNATURES = 4
"""Most signatures of one document that are looked at."""

_BEGIN, _END = b"BEGIN PGP SIGNATURE", b"END PGP SIGNATURE"
_DECLARATION = re.compile(rb"<\?xml\s[^>]*>")
_RECOGNISED = 64
"""Bytes at the end of the element by which its end is found: quicker than looking for all of it."""


@dataclass(frozen=True)
class Bundled:
    """One signature of a document.

    Attributes:
        armor: The signature, as OpenPGP writes it.
        signed: The bytes that it is to be the signature of.
    """

    armor: bytes
    signed: bytes


def bundled_signatures(document: bytes) -> list[Bundled]:
    """Return at most `MAX_SIGNATURES` signatures of *document*, well-formed and without DTD."""
    element = element_bytes(document)
    ending = element[-_RECOGNISED:]
    # UTF-16; it is ASCII
    tail = document[document.rfind(ending) + len(ending) :].replace(b"\x00", b"")
    found = [Bundled(block.replace(b"=====", b"-----"), element) for block in _blocks(tail, b"=====")]
    declaration = _DECLARATION.match(document)
    if declaration and _BEGIN in tail:
        signed = declaration[0] + element
        found += [Bundled(_unescape(block), signed) for block in _blocks(tail, b"^^^^^")]
    return found[:MAX_SIGNATURES]


def bundle(document: bytes, armor: bytes) -> bytes:
    """Return *document* with the signature *armor* of its root element, in layout 2012."""
    return b"%s<!--\n%s\n-->\n" % (document, armor.strip().replace(b"-----", b"====="))


def _blocks(text: bytes, fence: bytes) -> Iterator[bytes]:
    begin, end = fence + _BEGIN + fence, fence + _END + fence
    for part in text.split(begin, MAX_SIGNATURES)[1:]:
        body, closed, _ = part.partition(end)
        if closed:
            yield begin + body + end


def _unescape(block: bytes) -> bytes:
    return re.sub(rb"(?<!\\)\^", b"-", block).replace(rb"\^", b"^")
