"""The process that a plug-in lives in: events in by a socket, answers out, one after the other.

Started by `plugin_process` with the plug-in's name and options; its standard input is the socket.
What the plug-in prints goes where the gateway's own output goes.
"""

import json
import os
import socket
import sys
import traceback
from typing import BinaryIO

from nightwire.gateway.handlers.plugins import Act, PluginError, load_plugin, read_event


def main(name: str, options: str) -> int:
    """Serve the plug-in *name* until the gateway hangs up; return the exit status."""
    with _take_stdin() as connection, connection.makefile("rb") as events:
        try:
            act = load_plugin(name, json.loads(options))
        except PluginError as error:
            _answer(connection, str(error))
            return 1
        _answer(connection, "")
        while (answer := _handle_next(act, events)) is not None:
            _answer(connection, answer)
    return 0


def _take_stdin() -> socket.socket:
    """Return the socket on standard input, and leave nothing there that a plug-in could read."""
    connection = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return connection


def _handle_next(act: Act, events: BinaryIO) -> str | None:
    """Have the plug-in act on the next event; return its error, or None when there are no more."""
    line = events.readline()
    if not line:
        return None
    header = json.loads(line)
    raw = events.read(header.pop("bytes"))
    try:
        act(read_event(raw, **header))
    except Exception as error:  # noqa: BLE001  (a plug-in may raise anything; it is reported, not hidden)
        where = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {error} ({os.path.basename(where.filename)}:{where.lineno})"  # noqa: PTH119
    return ""


def _answer(connection: socket.socket, reason: str) -> None:
    connection.sendall(json.dumps({"reason": reason[:1000]}).encode() + b"\n")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
