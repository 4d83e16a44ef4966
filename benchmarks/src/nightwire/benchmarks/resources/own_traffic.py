"""What this very process has moved over TCP, on the connections that it has open.

Who works for half a second is gone before anybody has looked at its sockets; so it looks itself,
last thing.
"""

import os
import socket
import stat
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from nightwire.benchmarks.model.sample import TcpTraffic

TCP_INFO = struct.Struct("=120xQQ")
"""``tcpi_bytes_acked`` and ``tcpi_bytes_received`` of Linux's ``struct tcp_info``, since 4.1."""


def own_traffic() -> TcpTraffic:
    """Return what went over this process's open TCP connections since each began."""
    return sum(map(_of, _connections()), TcpTraffic())


def _connections() -> Iterator[socket.socket]:
    """Yield a duplicate of each TCP socket that is open."""
    for number in [int(one.name) for one in Path("/proc/self/fd").iterdir()]:
        with suppress(OSError):  # it was closed meanwhile, the folder's own among them
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                with socket.socket(fileno=os.dup(number)) as one:
                    if one.type == socket.SOCK_STREAM and one.family in (socket.AF_INET, socket.AF_INET6):
                        yield one


def _of(one: socket.socket) -> TcpTraffic:
    return TcpTraffic(*TCP_INFO.unpack(one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO.size)))
