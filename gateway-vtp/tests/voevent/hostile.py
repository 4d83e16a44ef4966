"""What must hold of any document that a stranger may send, and documents made to break it."""

from contextlib import suppress

from nightwire.core.runtime import now_ms
from nightwire.gateway import InvalidEventError, author_packet, broker_packet, element_bytes, voevent_fields
from nightwire.gateway.voevent.packet import Packet
from nightwire.gateway.voevent.validation import check, schema_complaint
from nightwire.gateway.voevent.xml import XMLRefusedError, parse_xml
from nightwire.gateway.vtp.container import ContainerError, open_container
from nightwire.gateway.vtp.session import UpstreamSession
from nightwire.gateway.vtp.transport import is_transport, read_transport
from nightwire.schemas.records import VOEVENT


def stands(document: bytes) -> None:
    """Let the gateway have *document* in every role; nothing but a refusal may come of it."""
    _as_a_message(document)
    _as_a_container(document)
    for read in (author_packet, broker_packet):
        try:
            packet = read(document)
        except InvalidEventError:
            continue
        _can_be_admitted(packet)
    _native_check_agrees(document)


def _can_be_admitted(packet: Packet) -> None:
    """Hold *packet* to what admission does with it: it must fit a record."""
    VOEVENT.encode({**voevent_fields(packet), "origin": "author", "received": now_ms()})
    packet.ivorn.encode()
    packet.role.encode()
    assert element_bytes(packet.raw) in packet.raw


def _as_a_container(document: bytes) -> None:
    with suppress(ContainerError):
        for each in open_container(document, 1 << 16):
            assert len(each) <= 1 << 16


def _as_a_message(document: bytes) -> None:
    try:
        root = parse_xml(document)
        if is_transport(root):
            UpstreamSession("ivo://us").answer(read_transport(root))
    except XMLRefusedError:
        pass


def _native_check_agrees(document: bytes) -> None:
    checked = check(document)
    if checked is None or not checked.well_formed:
        return  # libxml2 decides
    root = parse_xml(document)
    if checked.valid:
        assert schema_complaint(root) is None
    start, end = checked.element or (0, 0)
    assert document[start:end] == element_bytes(document)
