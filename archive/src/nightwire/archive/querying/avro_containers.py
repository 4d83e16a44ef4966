"""Avro containers of whole alerts, with their stamps, the alerts' bodies unchanged."""

import json
import os
from collections.abc import Callable, Iterable, Iterator

from nightwire.archive.storage import Packet
from nightwire.schemas import Decoded
from nightwire.schemas.wire import SYNC_SIZE, container_block, container_head


def avro_parts(packets: Iterable[Packet], decode: Callable[[Packet], Decoded]) -> Iterator[tuple[int, bytes]]:
    """Yield containers of the alerts in *packets*, one a schema, as parts to be joined.

    Args:
        packets: The packets; one at a time is in memory.
        decode: Returns a packet's schema and body.

    Yields:
        The number of a container, from 0, and its next part: its head, or an alert.
    """
    sync, numbers = os.urandom(SYNC_SIZE), dict[str, int]()
    for packet in packets:
        decoded = decode(packet)
        if (text := json.dumps(decoded.schema, sort_keys=True)) not in numbers:
            numbers[text] = len(numbers)
            yield numbers[text], container_head(text.encode(), sync)
        yield numbers[text], container_block(decoded.body, sync)
