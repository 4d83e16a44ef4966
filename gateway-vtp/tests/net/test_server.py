"""The sockets that peers come to: who is refused, TLS, and peers that take nothing."""

import asyncio
import os
import socket
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from nightwire.gateway.net.access import Access
from nightwire.gateway.net.addresses import Address
from nightwire.gateway.net.connect import connect
from nightwire.gateway.net.limits import ConnectionLimiter, Limits
from nightwire.gateway.net.server import Converse, Endpoint, Listener
from nightwire.gateway.net.tls import TLSSettings, server_tls
from nightwire.gateway.status.metrics import GatewayMetrics
from nightwire.gateway.status.model import StatusModel
from nightwire.schemas.serving import TLSError

Authority = Callable[[str], Any]
"""Makes an authority of that name: an `Authority` of conftest."""


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while said := await reader.read(100):
        writer.write(said)
        await writer.drain()


@asynccontextmanager
async def listening(
    converse: Converse = echo,
    *,
    access: Access = Access(),  # noqa: B008  (a value)
    limits: Limits = Limits(),  # noqa: B008
    tls: TLSSettings | None = None,
) -> AsyncIterator[tuple[Address, Callable[[str, int], Awaitable[None]]]]:
    """Yield the address of an echo, and a function that waits for so many refusals."""
    registry = CollectorRegistry()
    door = Endpoint(
        "author",
        Address("127.0.0.1", 0, tls is not None),
        ConnectionLimiter(access, limits),
        GatewayMetrics(registry),
        StatusModel("ivo://test", time.time),
        tls=None if tls is None else server_tls(tls),
    )
    listener = Listener(door, converse)

    async def refused(reason: str, times: int) -> None:
        """Wait until so many were refused: we may be told before it is counted."""
        labels = {"role": "author", "reason": reason}
        async with asyncio.timeout(30):
            while registry.get_sample_value("nightwire_gateway_connections_refused_total", labels) != times:
                await asyncio.sleep(0.01)

    yield await listener.start(), refused
    listener.refuse_new()
    await listener.finish(0)


def said_back(where: Address, tls: TLSSettings, words: bytes = b"clear skies") -> bytes:
    """Connect as our own authors do, and return what is said back; nothing if we are hung up on."""
    try:
        with connect(where, 10, tls) as connection:
            connection.sendall(words)
            return connection.recv(100)
    except (ConnectionError, ssl.SSLError):
        return b""


async def ask(where: Address, tls: TLSSettings = TLSSettings()) -> bytes:  # noqa: B008
    return await asyncio.to_thread(said_back, where, tls)


async def test_whoever_is_denied_or_comes_once_too_often_is_hung_up_on_and_counted() -> None:
    async with listening(access=Access(("127.0.0.0/8",), ("127.0.0.1/32",))) as (where, refused):
        assert await ask(where) == b""
        await refused("denied", 1)
    async with listening(limits=Limits(per_address=1)) as (where, refused):
        _, first = await asyncio.open_connection(where.host, where.port)
        assert await ask(where) == b""
        await refused("address-full", 1)
        first.close()


async def test_of_many_that_come_at_once_no_more_get_in_than_may() -> None:
    async with listening(limits=Limits(connections=3)) as (where, refused):
        peers = await asyncio.to_thread(
            lambda: [socket.create_connection((where.host, where.port)) for _ in range(50)]
        )
        await refused("full", 47)
        for peer in peers:
            peer.close()


async def test_tls_carries_what_is_said_and_a_renewed_certificate_is_taken(authority: Authority) -> None:
    old, new = authority("old"), authority("new")
    ours = old.issue("gateway")
    async with listening(tls=TLSSettings(ours)) as (where, refused):
        assert await ask(where, TLSSettings(ca=old.file)) == b"clear skies"
        os.utime(new.issue("gateway"), ns=(1, 1))  # another time, however coarse the clock
        assert await ask(where, TLSSettings(ca=new.file)) == b"clear skies"
        assert await ask(where, TLSSettings(ca=old.file)) == b""
        await refused("tls", 1)


async def test_where_peers_have_to_show_a_certificate_those_of_others_are_refused(
    authority: Authority,
) -> None:
    ours, others = authority("ours"), authority("others")
    tls = TLSSettings(ours.issue("gateway"), client_ca=ours.file)
    async with listening(tls=tls) as (where, refused):
        for certificate, answer in (
            (ours.issue("me"), b"clear skies"),
            (others.issue("him"), b""),
            (None, b""),
        ):
            assert await ask(where, TLSSettings(certificate, ca=ours.file)) == answer
        await refused("tls", 2)


async def test_whoever_does_not_speak_tls_or_never_ends_its_handshake_is_refused(
    authority: Authority,
) -> None:
    ours = authority("ours")
    tls, limits = TLSSettings(ours.issue("gateway")), Limits(frame_timeout=0.3)
    async with listening(tls=tls, limits=limits) as (where, refused):
        assert await ask(Address(where.host, where.port)) in (b"", b"\x15\x03\x01\x00\x02\x02\x46")
        reader, mute = await asyncio.open_connection(where.host, where.port)
        assert await reader.read() == b""
        mute.close()
        await refused("tls", 2)
        assert await ask(where, TLSSettings(ca=ours.file)) == b"clear skies"


def test_files_that_are_no_certificates_are_named(tmp_path: Path) -> None:
    nonsense = tmp_path / "nonsense.pem"
    nonsense.write_text("nonsense")
    for settings in (TLSSettings(nonsense), TLSSettings()):
        with pytest.raises(TLSError, match=r"nonsense|--tls-cert"):
            server_tls(settings)


async def test_a_peer_that_takes_nothing_is_cut_off_and_its_place_is_free_again() -> None:
    held: list[asyncio.WriteTransport] = []

    async def much(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held.append(writer.transport)
        writer.write(bytes(64 << 20))

    async with listening(much, limits=Limits(connections=1, last_bytes=0.1)) as (where, _):
        with socket.create_connection((where.host, where.port)):  # and reads nothing
            async with asyncio.timeout(30):
                while await ask(where) == b"":
                    await asyncio.sleep(0.01)
        assert held[0].get_write_buffer_size() == 0  # what it did not take is not kept for it
