"""Who follows topics is in the directory meanwhile."""

import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from nightwire.core.kafka import properties
from nightwire.core.presence import EntryError, registered
from nightwire.core.runtime import find_endpoints


@contextmanager
def listed(topics: Sequence[str], reading: Mapping[str, Any]) -> Iterator[None]:
    """Keep a reader of *topics* in the directory within the block, by its group, else its process.

    Nobody hears of it where he is not: who only takes what is there, may not write the directory,
    or has a group whose name cannot stand there.

    Args:
        topics: What it reads; several are not told.
        reading: Its ``bootstrap``, ``group`` and ``follow``.

    Raises:
        NoStackError: There is no Kafka.
    """
    name = reading["group"] or f"subscribe.{socket.gethostname()}.{os.getpid()}"
    said = {"owner": properties().get("sasl.username", ""), "topic": topics[0] if len(topics) == 1 else ""}
    with ExitStack() as exits:
        if reading["follow"]:
            where = find_endpoints(reading["bootstrap"]).kafka
            with suppress(EntryError):
                exits.enter_context(registered(where, name, kind="consumer", **said))
        yield
