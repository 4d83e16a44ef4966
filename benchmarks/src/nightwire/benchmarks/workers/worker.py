"""Part."""

import json
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

Order = Mapping[str, Any]
Work = Callable[[], dict[str, Any]]


Parts = Mapping[str, Callable[[Order], AbstractContextManager[Work]]]
"""What a peer can do, by the ``part`` of an order: all that is done before its block is not measured."""


def serve(home: Order, parts: Parts) -> None:
    """Follow orders until standard input ends; *home* has what is in all of them."""
    while line := sys.stdin.readline():
        order = {**home, **json.loads(line)}
        with parts[order["part"]](order) as work:
            emit({"ready": True})
            sys.stdin.readline()
            emit(work())


def emit(value: dict[str, Any]) -> None:
    """Print *value* as one line, at once."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def input_closed() -> threading.Event:
    """Return what is set when standard input is closed."""
    stop = threading.Event()

    def listen() -> None:
        sys.stdin.read()
        stop.set()

    threading.Thread(target=listen, daemon=True).start()
    return stop
