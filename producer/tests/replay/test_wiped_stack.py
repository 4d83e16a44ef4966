"""A stack that was wiped, or another one at the same address: nothing is taken from before."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from nightwire.core.runtime import free_port
from nightwire.core.stack import Broker
from nightwire.producer.replay.schema_ids import SchemaIds
from nightwire.schemas import SchemaRegistry, UnknownSchemaError

pytestmark = pytest.mark.kafka


def schema(name: str, field: str) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": field, "type": "long"}]}


def test_the_second_stack_at_an_address_registers_all_and_believes_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    serve_registry: Callable[..., AbstractContextManager[str]],
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    places = {"port": free_port(), "controller": free_port()}
    at, rubins, ztfs = free_port(), schema("lsst.v7_1.alert", "x"), schema("ztf.alert", "y")
    given = []
    for folder in ("first", "second"):
        broker = Broker(tmp_path / folder, **places)
        broker.start()
        try:
            with serve_registry(broker.bootstrap, at) as url, SchemaRegistry(url) as registry:
                if folder == "second":
                    with pytest.raises(UnknownSchemaError):
                        registry.schema(given[-1])
                    ztfs = schema("ztf.alert", "another")
                assert SchemaIds(registry, "lsst").id(rubins) == 701
                given.append(SchemaIds(registry, "ztf").id(ztfs))
            with serve_registry(broker.bootstrap, at) as url, SchemaRegistry(url) as fresh:
                assert fresh.registered(701) == rubins
                assert fresh.schema(given[-1]) == ztfs
        finally:
            broker.stop()
    assert given[0] == given[1]  # the same id, and another schema
