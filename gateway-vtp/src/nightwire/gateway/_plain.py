"""Acks and iamalives in their plainest form, as nearly all of them are, read without an XML parser.  Pure.

At a thousand subscribers an event has a thousand acks, and libxml2 takes 20 µs for each.  What is taken here
is a part of what is well-formed; for everything else there is `_transport.read_transport`.
"""

import re
from functools import lru_cache

from nightwire.gateway._transport import ACK, IAMALIVE, Transport

LONGEST = 2_000
"""Longest document that is looked at. [byte]"""

_SPACE = rb"[ \t\r\n]"
_NAME = rb"[A-Za-z_][A-Za-z0-9_.-]*"
_QNAME = rb"(?:%s:)?%s" % (_NAME, _NAME)
_VALUE = rb"""(?:"[^"<&\x00-\x08\x0b\x0c\x0e-\x1f]*"|'[^'<&\x00-\x08\x0b\x0c\x0e-\x1f]*')"""
_TEXT = rb"([^<>&\x00-\x08\x0b\x0c\x0e-\x1f]*)"
_ATTRIBUTE = re.compile(rb"%s+(%s)%s*=%s*(%s)" % (_SPACE, _QNAME, _SPACE, _SPACE, _VALUE))
_DECLARATION = rb"""(?:<\?xml version=["']1\.0["'](?: encoding=["'](?i:utf-8)["'])? ?\?>)?"""
_PLAIN = re.compile(
    rb"%s%s*<((?:%s:)?Transport)((?:%s+%s%s*=%s*%s)*)%s*>%s*"
    % (_DECLARATION, _SPACE, _NAME, _SPACE, _QNAME, _SPACE, _SPACE, _VALUE, _SPACE, _SPACE)
    + rb"<Origin>%s</Origin>%s*(?:<Response>%s</Response>%s*)?<TimeStamp>%s</TimeStamp>%s*</\1%s*>%s*"
    % (_TEXT, _SPACE, _TEXT, _SPACE, _TEXT, _SPACE, _SPACE, _SPACE)
)


def plain_transport(document: bytes) -> Transport | None:
    """Return the ack or iamalive in *document*; None where it is anything else, or not plain ASCII."""
    found = _PLAIN.fullmatch(document) if len(document) <= LONGEST and document.isascii() else None
    if found is None or (role := _role(found[1], found[2])) not in (ACK, IAMALIVE):
        return None
    response = None if found[4] is None else found[4].decode().strip()
    return Transport(role, found[3].decode().strip(), response)


@lru_cache(maxsize=1024)
def _role(tag: bytes, attributes: bytes) -> str | None:
    """Return the role among *attributes*; None where they are not well-formed, or there is none."""
    pairs = _ATTRIBUTE.findall(attributes)
    values: dict[bytes, bytes] = {name: value[1:-1] for name, value in pairs}
    used = {name.partition(b":")[0] for name in (tag, *values) if b":" in name} - {b"xmlns", b"xml"}
    if len(values) < len(pairs) or any(b"xmlns:" + prefix not in values for prefix in used):
        return None
    return values.get(b"role", b"").decode()
