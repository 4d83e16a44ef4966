"""Connecting to a broker as a subscriber, to see whether it is alive."""

import socket
import time

from nightwire.gateway.net.addresses import Address
from nightwire.gateway.net.connect import connect
from nightwire.gateway.net.tls import TLSSettings
from nightwire.gateway.voevent.packet import read_packet
from nightwire.gateway.voevent.xml import XMLRefusedError, parse_xml
from nightwire.gateway.vtp.frames import FrameDecoder, FrameError
from nightwire.gateway.vtp.transport import is_transport, read_transport
from nightwire.schemas import MendableError


class PingError(MendableError):
    """There is no broker, or it is silent; the message says which."""


def ping_broker(peer: Address, timeout: float, tls: TLSSettings) -> str:
    """Connect to *peer* as a subscriber would; return a description of its first message.

    Raises:
        PingError: It cannot be reached, or sends no VTP within *timeout* [s].
    """
    began = time.monotonic()
    try:
        with connect(peer, timeout, tls) as connection:
            connected = time.monotonic() - began
            message = _describe(_first_message(connection))
    except (OSError, FrameError, XMLRefusedError) as error:
        raise PingError(f"{peer}: {error or 'no message'}") from error
    return f"{peer}: connected in {connected * 1e3:.1f} ms, {message} after {time.monotonic() - began:.3f} s"


def _first_message(connection: socket.socket) -> bytes:
    decoder = FrameDecoder()
    while chunk := connection.recv(1 << 16):
        decoder.receive(chunk)
        for message in decoder:
            return message
    raise FrameError("it hung up without a message")


def _describe(message: bytes) -> str:
    root = parse_xml(message)
    if is_transport(root):
        transport = read_transport(root)
        return f"{transport.role} from {transport.origin}"
    return f"event {read_packet(message, root).ivorn}"
