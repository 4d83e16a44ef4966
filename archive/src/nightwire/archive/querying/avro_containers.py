"""Avro containers of whole alerts, with their stamps, the alerts' bodies unchanged."""

import json
import os
from collections.abc import Callable, Iterable

from nightwire.archive.storage import Packet
from nightwire.schemas import Decoded
from nightwire.schemas.wire import SYNC_SIZE, container_block, container_head


def as_avro(packets: Iterable[Packet], decode: Callable[[Packet], Decoded]) -> dict[str, bytes]:
    """Return containers of the alerts in *packets*, by schema.

    Args:
        packets: The packets.
        decode: Returns a packet's schema and body.
    """
    made, syncs = dict[str, bytearray](), dict[str, bytes]()
    for packet in packets:
        decoded = decode(packet)
        text = json.dumps(decoded.schema, sort_keys=True)
        if text not in made:
            syncs[text] = os.urandom(SYNC_SIZE)
            made[text] = bytearray(container_head(text.encode(), syncs[text]))
        made[text] += container_block(decoded.body, syncs[text])
    return {text: bytes(one) for text, one in made.items()}
