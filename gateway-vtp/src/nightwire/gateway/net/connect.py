"""Connections that we open and wait for: of an author, and of ``ping``."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from nightwire.gateway.net.addresses import Address
from nightwire.gateway.net.tls import TLSSettings, client_context


@contextmanager
def connect(broker: Address, timeout: float, tls: TLSSettings) -> Iterator[socket.socket]:
    """Yield a connection to *broker*, on which nothing takes longer than *timeout* [s].

    Raises:
        OSError: It cannot be reached, or its certificate is not to be believed.
        TLSError: A file of *tls* cannot be used.
    """
    with socket.create_connection((broker.host, broker.port), timeout=timeout) as plain:
        if not broker.tls:
            yield plain
            return
        with client_context(tls).wrap_socket(plain, server_hostname=broker.host) as connection:
            yield connection
