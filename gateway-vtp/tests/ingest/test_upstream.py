"""Connections to remote brokers, of which none is there."""

import asyncio
import time
from contextlib import suppress
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry

from nightwire.gateway import Transport, encode_frame
from nightwire.gateway.ingest.intake import EventIntake
from nightwire.gateway.ingest.settings import UpstreamSettings
from nightwire.gateway.ingest.upstream import UpstreamService
from nightwire.gateway.net.addresses import Address
from nightwire.gateway.net.memory import MemoryBudget
from nightwire.gateway.status.metrics import GatewayMetrics
from nightwire.gateway.status.model import StatusModel
from nightwire.gateway.vtp.session import encode_now


async def ends(remote: Address) -> str:
    """Follow *remote*; return why the first connection to it ended."""
    nothing = cast(Any, None)
    metrics, status = GatewayMetrics(CollectorRegistry()), StatusModel("ivo://test", time.time)
    intake = EventIntake("broker", nothing, nothing, nothing, nothing, metrics, MemoryBudget())
    service = UpstreamService("ivo://test", UpstreamSettings(), intake, status)
    async with asyncio.timeout(30):
        job = asyncio.ensure_future(service.follow(remote))
        while not (seen := status.status()["remotes"]) or not seen[0]["reason"]:
            assert not job.done(), job.exception()
            await asyncio.sleep(0.01)
        job.cancel()
    return str(seen[0]["reason"])


@pytest.mark.parametrize("host", ["a" * 64, "\udcff", "a..b"])
def test_a_remote_name_that_is_no_name_ends_nothing(host: str) -> None:
    assert asyncio.run(ends(Address(host, 1))).startswith("cannot connect")


@pytest.mark.parametrize("role", ["iamalive", "authenticate", "ack"])
async def test_a_broker_that_floods_us_is_left(role: str) -> None:
    async def flood(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while not writer.is_closing():
                writer.write(encode_frame(encode_now(Transport(role, "ivo://remote/broker"))))
                await writer.drain()

    server = await asyncio.start_server(flood, "127.0.0.1", 0)
    async with server:
        assert "nobody asked for" in await ends(Address(*server.sockets[0].getsockname()))
