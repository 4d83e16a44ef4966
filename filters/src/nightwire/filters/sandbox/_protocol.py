"""What the sandbox says to a child: a header, with descriptors at times, and a body in JSON.

The sandbox is trusted by its children; what comes back is another matter (`_answer`).
"""

import json
import signal
import struct
from typing import Any

HEADER = struct.Struct("<16sBI")
"""Nonce, kind, length of the body [byte]."""

BATCH, JUDGE, RELEASE = 1, 2, 3
"""Map the batch whose descriptor comes along; judge it by a filter; forget it."""

READY = struct.Struct("<8s32s")
"""A child's first words: the mark, and which layers are not up, one byte each in the order of `LAYERS`."""
MARK = b"walls up"

STOP, NUDGE = signal.SIGUSR1, signal.SIGUSR2
"""Stop judging; stop, unless a column is being made: that is done once for all alerts."""

GRACE_S = 0.3
"""Time that a filter's process has to answer once it was told to stop. [s]"""


def request(kind: int, body: dict[str, Any], nonce: bytes = bytes(16)) -> bytes:
    """Return a request as it is sent."""
    packed = json.dumps(body).encode()
    return HEADER.pack(nonce, kind, len(packed)) + packed
