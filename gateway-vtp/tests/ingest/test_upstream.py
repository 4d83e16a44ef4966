"""Connections to remote brokers, of which none is there."""

import asyncio
import time
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry

from nightwire.gateway.ingest.intake import EventIntake
from nightwire.gateway.ingest.settings import UpstreamSettings
from nightwire.gateway.ingest.upstream import UpstreamService
from nightwire.gateway.net.addresses import Address
from nightwire.gateway.status.metrics import GatewayMetrics
from nightwire.gateway.status.model import StatusModel


@pytest.mark.parametrize("host", ["a" * 64, "\udcff", "a..b"])
def test_a_remote_name_that_is_no_name_ends_nothing(host: str) -> None:
    nothing = cast(Any, None)
    metrics, status = GatewayMetrics(CollectorRegistry()), StatusModel("ivo://test", time.time)
    intake = EventIntake("broker", nothing, nothing, nothing, nothing, metrics)
    service = UpstreamService("ivo://test", UpstreamSettings(), intake, status)

    async def follow() -> None:
        async with asyncio.timeout(30):
            job = asyncio.ensure_future(service.follow(Address(host, 1)))
            while not any(one["reason"] for one in status.status()["remotes"]):
                assert not job.done(), job.exception()
                await asyncio.sleep(0.01)
            job.cancel()

    asyncio.run(follow())
    assert status.status()["remotes"][0]["reason"].startswith("cannot connect")
