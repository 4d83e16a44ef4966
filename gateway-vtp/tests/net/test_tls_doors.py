"""Doors with TLS beside the plain ones: whoever shows the site's certificate comes in from
everywhere, and nobody else does.
"""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from nightwire.core.stack import free_port
from nightwire.core.tls.site import Site
from nightwire.gateway.net.addresses import Address
from nightwire.gateway.net.connect import connect
from nightwire.gateway.net.tls import TLSSettings, client_context
from tests._voevents import packet

pytestmark = pytest.mark.kafka


def test_two_doors_lead_to_one_gateway(
    start_gateway: Callable[..., Any],
    telescope: Callable[..., Any],
    ivorns: Callable[[int], list[str]],
    tmp_path: Path,
) -> None:
    site, stranger = Site(tmp_path / "here"), Site(tmp_path / "elsewhere")
    for one in (site, stranger):
        one.init()
    mine, strange = site.add_client("lco"), stranger.add_client("lco")
    authors, subscribers = free_port(), free_port()
    gateway = start_gateway(
        *("--tls-cert", str(site.server), "--tls-client-ca", str(site.ca)),
        *("--tls-authors", f"127.0.0.1:{authors}", "--tls-subscribers", f"127.0.0.1:{subscribers}"),
        *("--author-allow", "192.0.2.0/24"),
    )
    inside = telescope(gateway.subscribers)
    outside = telescope(subscribers, tls=client_context(TLSSettings(mine, ca=site.ca)))
    (ivorn,) = ivorns(1)

    def sent(*words: str, port: int = authors) -> bytes:
        done = gateway.send("--to", f"tls://127.0.0.1:{port}", *words, "-", stdin=packet(ivorn))
        return bytes(done.stdout + done.stderr) if done.returncode else b"acked"

    knows = ("--tls-ca", str(site.ca), "--timeout", "5", "--patience", "0")
    for words in (knows, (*knows, "--tls-cert", str(strange)), ("--patience", "0")):
        assert sent(*words) != b"acked"
    assert gateway.send("--patience", "0", "-", stdin=packet(ivorn)).returncode != 0  # no address is allowed
    assert sent(*knows, "--tls-cert", str(mine)) == b"acked"
    assert [event.count(ivorn.encode()) for event in inside.wait_for(1) + outside.wait_for(1)] == [1, 1]
    for tls, certificate in ((True, strange), (True, None), (False, None)):
        door = Address("127.0.0.1", subscribers, tls)
        with suppress(OSError), connect(door, 10, TLSSettings(certificate, ca=site.ca)) as connection:
            connection.sendall(b"hello")
            assert b"Transport" not in connection.recv(1 << 10)
