"""The zygote: a process that imports what filters may, forks filters' processes and reaps them.

It never runs a filter, nor sees a filter's source or answers: a process that it forks talks to the
sandbox through a channel of its own.
"""

import gc
import json
import os
import signal
import socket
from typing import Any

from nightwire.filters.sandbox import child, preload

MAX_REQUEST = 1 << 16
"""Longest request. [byte]"""


def main() -> None:
    """Serve the requests on standard input, a socket, until it closes; then end all processes."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # sent to all by a terminal: the socket decides
    control = socket.socket(fileno=os.dup(0))
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    preload.preload_basics()
    gc.freeze()
    control.send(b"{}")
    Zygote(control).serve()


class Zygote:
    """Answers requests, one at a time.

    Args:
        control: Socket to the sandbox.  A request is a JSON object; one to fork brings the
            descriptors of the new process's channel and of its progress page.
    """

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._pids: set[int] = set()

    def serve(self) -> None:
        """Answer until the sandbox is gone."""
        while True:
            body, descriptors, _, _ = socket.recv_fds(self._control, MAX_REQUEST, 2)
            if not body:
                break
            answer = self._answer(json.loads(body), descriptors)
            if answer is not None:
                self._control.send(json.dumps(answer).encode())
        for pid in list(self._pids):
            self._end(pid)

    def _answer(self, request: dict[str, Any], descriptors: list[int]) -> dict[str, Any] | None:
        if "preload" in request:
            return _preloaded(request["preload"])
        if "discard" in request:
            self._end(request["discard"])
            return None
        if "end" in request:
            return {"status": self._end(request["end"])}
        return {"pid": self._fork(request["fork"], descriptors)}

    def _fork(self, limits: dict[str, Any], descriptors: list[int]) -> int:
        parent, (channel, progress) = os.getpid(), descriptors
        if pid := os.fork():
            self._pids.add(pid)
            for descriptor in descriptors:
                os.close(descriptor)
            return pid
        try:
            self._control.close()
            child.run(limits, channel, progress, parent)
        finally:
            os._exit(1)

    def _end(self, pid: int) -> int:
        """Kill and reap a process; return its exit status, its own where it had ended before."""
        if pid not in self._pids:  # forked by an earlier zygote, and ended with that
            return -signal.SIGKILL
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        self._pids.discard(pid)
        return os.waitstatus_to_exitcode(status)


def _preloaded(group: str) -> dict[str, Any]:
    try:
        preload.preload(group)
    except Exception as error:  # noqa: BLE001 - whatever a package does at its import is the answer
        return {"error": f"{group} cannot be imported: {type(error).__name__}: {error}"}
    gc.freeze()
    return {}
