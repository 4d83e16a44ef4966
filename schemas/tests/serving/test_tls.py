"""A server that runs uses the certificate that is there, and one that it can use."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from nightwire.core.tls.site import Site
from nightwire.schemas import MendableError
from nightwire.schemas.serving import ServerTLS

Shown = Callable[[], Awaitable[bytes]]


async def greeted(tls: ServerTLS, scene: Callable[[Shown], Awaitable[None]], ca: Path) -> None:
    """Run *scene* beside a server that was given its context once, as uvicorn is."""

    async def hang_up(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0, ssl=tls.following_context())
    host, port = server.sockets[0].getsockname()

    async def shown() -> bytes:
        calling = ssl.create_default_context(cafile=ca)
        _reader, writer = await asyncio.open_connection(host, port, ssl=calling)
        found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        return bytes(found)

    async with server:
        await scene(shown)


def test_a_server_that_runs_shows_a_renewed_certificate(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.init()

    async def scene(shown: Shown) -> None:
        first = await shown()
        assert await shown() == first
        site.init()
        assert await shown() != first

    asyncio.run(greeted(ServerTLS(site.server), scene, site.ca))


def test_one_that_cannot_be_used_is_logged_and_the_one_before_stays(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    site = Site(tmp_path)
    site.init()

    async def scene(shown: Shown) -> None:
        first = await shown()
        site.server.write_text("half of a")
        assert await shown() == first
        site.server.unlink()
        assert await shown() == first
        site.init()
        assert await shown() != first

    asyncio.run(greeted(ServerTLS(site.server), scene, site.ca))
    assert "going on with the certificate that was there before" in caplog.text


def test_a_server_does_not_start_with_one_that_cannot_be_used(tmp_path: Path) -> None:
    site, other = Site(tmp_path / "here"), Site(tmp_path / "other")
    for one in (site, other):
        one.init()
    for certificate, key in ((tmp_path / "none", None), (site.server, other.server)):
        with pytest.raises(MendableError, match="cannot be used"):
            ServerTLS(certificate, key)
