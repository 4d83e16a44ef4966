"""VTP, the VOEvent Transport Protocol, on the outside; Kafka on the inside."""

from nightwire.gateway.client.author import Author
from nightwire.gateway.net.addresses import read_address
from nightwire.gateway.voevent.packet import Packet, element_bytes, voevent_fields
from nightwire.gateway.voevent.template import alert_voevent
from nightwire.gateway.voevent.validation import InvalidEventError, author_packet, broker_packet
from nightwire.gateway.vtp.frames import FrameDecoder, FrameError, encode_frame
from nightwire.gateway.vtp.submission import Receipt, Submission
from nightwire.gateway.vtp.transport import Transport, encode_transport, read_transport

__all__ = [
    "Author",
    "FrameDecoder",
    "FrameError",
    "InvalidEventError",
    "Packet",
    "Receipt",
    "Submission",
    "Transport",
    "alert_voevent",
    "author_packet",
    "broker_packet",
    "element_bytes",
    "encode_frame",
    "encode_transport",
    "read_address",
    "read_transport",
    "voevent_fields",
]
