"""The scenario `portal`, tiny, on a real Kafka."""

import asyncio
from pathlib import Path

import pytest

from nightwire.benchmarks import Context, Kind, Size
from nightwire.benchmarks.environment.cluster import Cluster
from nightwire.benchmarks.scenarios.portal import scenario, viewers
from nightwire.benchmarks.scenarios.portal.scenario import Watched, figures_of

KNOWN = {figure.name for figure in figures_of()}


@pytest.mark.proof
@pytest.mark.kafka
@pytest.mark.slow
def test_delays_are_measured_beside_viewers_and_without(
    kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scenario, "VIEWERS", 3)
    monkeypatch.setattr(scenario, "POOL", 20)
    context = Context(tmp_path, Size(100, 1, 20.0), kafka)
    cluster = Cluster(context)
    one = Watched(context, cluster)
    one.prepare()
    watched, alone = (one.run_once(kind) for kind in (Kind.SUBJECT, Kind.BASELINE))
    cluster.close()
    assert watched.keys() == KNOWN
    assert alone.keys() == {name for name in KNOWN if name.startswith("live_")}
    assert min(watched.values()) > 0


def test_a_viewer_looks_on_where_the_portal_ends_a_connection_that_he_keeps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[bytes] = []

    async def answer_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async def look() -> None:
        server = await asyncio.start_server(answer_once, "127.0.0.1")
        viewer = viewers.Viewer(1, server.sockets[0].getsockname()[1])
        looking = asyncio.create_task(viewer.look())
        while len(asked) < 3 and not looking.done():
            await asyncio.sleep(0.01)  # polling a condition
        assert looking.cancel()
        await asyncio.wait([looking])
        for _, writer in viewer.idle:
            writer.close()
        server.close()

    monkeypatch.setattr(viewers, "THINK", 0.01)
    asyncio.run(look())
