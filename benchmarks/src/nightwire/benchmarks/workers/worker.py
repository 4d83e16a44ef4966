"""A worker's side of the conversation with the harness: lines of JSON, in and out.

A worker is started with its order as a word of its command line.  It prints a line when it is in
place, and a line with what it found.  Times are of the machine's monotonic clock, so that those of
several processes can be compared.
"""

import json
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from threading import Event, Thread
from typing import Any

Order = Mapping[str, Any]
Work = Callable[[], dict[str, Any]]
Parts = Mapping[str, Callable[[Order], AbstractContextManager[Work]]]
"""What a worker can do, by the ``part`` of an order; what precedes its block is not measured."""


def first_order() -> dict[str, Any]:
    """Return the order that this process was started with."""
    order: dict[str, Any] = json.loads(sys.argv[1])
    return order


def serve(parts: Parts) -> None:
    """Follow one order after another, a line each, until standard input ends.

    To each it prints a line when it is in place, begins at the next line, and prints its findings.
    The order of the command line has what is in all of them.
    """
    shared = first_order()
    while line := sys.stdin.readline():
        order = {**shared, **json.loads(line)}
        with parts[order["part"]](order) as work:
            emit({"ready": True})
            sys.stdin.readline()
            emit(work())


def emit(value: Mapping[str, Any]) -> None:
    """Print *value* as one line, at once."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def input_ended(read: Callable[[], str] = sys.stdin.read, ended: Event | None = None) -> Event:
    """Return *ended*, set once *read* returns: standard input is closed, or has one more line."""
    ended = ended or Event()

    def listen() -> None:
        read()
        ended.set()

    Thread(target=listen, daemon=True).start()
    return ended
