"""The registry's client against our own server: the same requests, without a network or Kafka."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry

from nightwire.schemas import SchemaError, SchemaRegistry, UnknownSchemaError
from nightwire.schemas.registry.api import Api
from nightwire.schemas.registry.server import Metrics, application, routes
from nightwire.schemas.registry.store import Store

ONE: dict[str, Any] = {"type": "record", "name": "a", "fields": [{"name": "x", "type": "int"}]}
TWO = {**ONE, "fields": [*ONE["fields"], {"name": "y", "type": "int"}]}


class MemoryLog:
    """A log that comes back at once."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def append(self, _key: str, value: bytes) -> None:
        """Hand the record back."""
        self._store.take(value)

    def renew(self) -> None:
        """Nothing is ever lost here."""


@pytest.fixture
def client(tmp_path: Path) -> SchemaRegistry:
    store = Store()
    store.end_of_log()
    app = httpx.ASGITransport(application(routes(Api(store, MemoryLog(store))), Metrics(CollectorRegistry())))

    async def ask(request: httpx.Request) -> httpx.Response:
        async with httpx.AsyncClient(transport=app) as http:
            answer = await http.request(request.method, request.url, content=request.content)
            return httpx.Response(answer.status_code, content=answer.content)

    def transport(request: httpx.Request) -> httpx.Response:
        return asyncio.run(ask(request))

    return SchemaRegistry("http://registry", cache_dir=tmp_path, transport=httpx.MockTransport(transport))


def test_a_subjects_versions_are_looked_up(client: SchemaRegistry) -> None:
    given = client.register("alerts.a-value", ONE, schema_id=1100)
    client.register("alerts.a-value", TWO)
    assert given == 1100
    assert client.version("alerts.a-value", 1) == (1, 1100, ONE)
    assert client.latest("alerts.a-value")[0] == 2
    assert client.look_up("alerts.a-value", ONE) == (1, 1100)
    with pytest.raises(UnknownSchemaError, match="Version 9 not found"):
        client.version("alerts.a-value", 9)
    with pytest.raises(UnknownSchemaError):
        client.look_up("alerts.a-value", {**ONE, "name": "b"})


def test_levels_are_read_set_and_asked(client: SchemaRegistry) -> None:
    client.register("a-value", ONE)
    assert client.compatibility() == client.compatibility("a-value") == "BACKWARD"
    (why,) = client.may_follow("a-value", TWO)
    assert why == "the new schema cannot read the old: y: it was not written, and has no default"
    with pytest.raises(SchemaError, match="not compatible"):
        client.register("a-value", TWO)
    client.set_compatibility("NONE", "a-value")
    assert client.compatibility("a-value") == "NONE"
    assert client.may_follow("a-value", TWO) == []
    assert client.register("a-value", TWO)
    with pytest.raises(SchemaError, match="Invalid compatibility level"):
        client.set_compatibility("SOME")
