"""VTP, the VOEvent Transport Protocol, on the outside; Kafka on the inside."""

from nightwire.gateway._author import Author
from nightwire.gateway._fields import voevent_fields
from nightwire.gateway._frames import FrameDecoder, FrameError, encode_frame
from nightwire.gateway._letters import Letter, Receipt
from nightwire.gateway._transport import Transport, encode_transport, read_transport
from nightwire.gateway._validation import InvalidEventError, author_packet, broker_packet
from nightwire.gateway._voevent import Packet, element_bytes

__all__ = [
    "Author",
    "FrameDecoder",
    "FrameError",
    "InvalidEventError",
    "Letter",
    "Packet",
    "Receipt",
    "Transport",
    "author_packet",
    "broker_packet",
    "element_bytes",
    "encode_frame",
    "encode_transport",
    "read_transport",
    "voevent_fields",
]
