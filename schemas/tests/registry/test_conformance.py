"""Confluent's own Python client against our registry, and against Apicurio: one table for both.

Where Apicurio answers otherwise, `DIFFERS` says so.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.serialization import MessageField, SerializationContext

from nightwire.schemas import AlertDecoder, SchemaRegistry
from schemas.tests.registry.apicurio_server import running

DIFFERS: dict[str, Any] = {
    "explicit id": False,  # it ignores the id that is asked for, and gives one that it likes
    "wire id": False,
    "types": ["AVRO", "JSON", "PROTOBUF"],
    "own schemas": False,
}
"""What Apicurio answers where it differs from ours, by name of the question."""


def avro(*fields: str, name: str = "a") -> str:
    """Return a record schema whose fields are longs, as text."""
    longs = [{"name": field, "type": "long"} for field in fields]
    return json.dumps({"type": "record", "name": name, "fields": longs})


class Asked:
    """A registry and its clients; every question uses a subject of its own."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.client = SchemaRegistryClient({"url": url})
        self.http = httpx.Client(base_url=url)

    def close(self) -> None:
        """Close the connections."""
        self.http.close()
        self.client.__exit__()


def explicit_id(asked: Asked) -> Any:
    body = {"schema": avro("q", name="c1"), "id": 1109}
    return asked.http.post("/subjects/c1-value/versions", json=body).json() == {"id": 1109}


def same_id_again(asked: Asked) -> Any:
    first = asked.client.register_schema("c2-value", Schema(avro("x", name="c2"), "AVRO"))
    return asked.client.register_schema("c2-value", Schema(avro("x", name="c2"), "AVRO")) == first


def serializer(asked: Asked) -> Any:
    context = SerializationContext("c3", MessageField.VALUE)
    message = AvroSerializer(asked.client, avro("x", name="c3"))({"x": 3}, context)
    return AvroDeserializer(asked.client)(message, context), message[5:]


def wire_id(asked: Asked) -> Any:
    asked.http.post("/subjects/c4-value/versions", json={"schema": avro("r", name="c4"), "id": 1110})
    context = SerializationContext("c4", MessageField.VALUE)
    options = {"auto.register.schemas": False, "use.latest.version": True}
    message = AvroSerializer(asked.client, avro("r", name="c4"), conf=options)({"r": 3}, context)
    return int.from_bytes(message[1:5], "big") == 1110


def our_client(asked: Asked) -> Any:
    context = SerializationContext("c5", MessageField.VALUE)
    message = AvroSerializer(asked.client, avro("x", name="c5"))({"x": 3}, context)
    with SchemaRegistry(asked.url) as registry:
        return AlertDecoder(registry).decode(message).alert


def look_up(asked: Asked) -> Any:
    schema = Schema(avro("x", name="c6"), "AVRO")
    asked.client.register_schema("c6-value", schema)
    found = asked.client.lookup_schema("c6-value", schema)
    return found.subject, found.version


def latest(asked: Asked) -> Any:
    asked.client.register_schema("c7-value", Schema(avro("x", "y", name="c7"), "AVRO"))
    asked.client.register_schema("c7-value", Schema(avro("x", name="c7"), "AVRO"))
    return asked.client.get_latest_version("c7-value").version, asked.client.get_versions("c7-value")


def by_version(asked: Asked) -> Any:
    asked.client.register_schema("c8-value", Schema(avro("x", name="c8"), "AVRO"))
    found = asked.client.get_version("c8-value", 1)
    return json.loads(found.schema.schema_str)["name"], "c8-value" in asked.client.get_subjects()


def incompatible(asked: Asked) -> Any:
    asked.client.register_schema("c9-value", Schema(avro("x", name="c9"), "AVRO"))
    asked.client.set_compatibility("c9-value", "BACKWARD")
    wider = Schema(avro("x", "y", name="c9"), "AVRO")
    return asked.client.test_compatibility("c9-value", wider), error(
        lambda: asked.client.register_schema("c9-value", wider)
    )[0]


def config(asked: Asked) -> Any:
    asked.client.register_schema("d1-value", Schema(avro("x", name="d1"), "AVRO"))
    asked.client.set_compatibility("d1-value", "FULL")
    return asked.client.get_compatibility("d1-value")


def delete(asked: Asked) -> Any:
    asked.client.register_schema("d2-value", Schema(avro("x", name="d2"), "AVRO"))
    return asked.client.delete_subject("d2-value"), "d2-value" in asked.client.get_subjects()


def error(ask: Callable[[], Any]) -> tuple[int, int]:
    """Return HTTP status and error code of a refusal."""
    with pytest.raises(SchemaRegistryError) as caught:
        ask()
    return caught.value.http_status_code, caught.value.error_code


def unknown_subject(asked: Asked) -> Any:
    return error(lambda: asked.client.get_latest_version("none-value"))


def unknown_version(asked: Asked) -> Any:
    asked.client.register_schema("d3-value", Schema(avro("x", name="d3"), "AVRO"))
    return error(lambda: asked.client.get_version("d3-value", 9))


def unknown_id(asked: Asked) -> Any:
    return error(lambda: asked.client.get_schema(99_999))


def no_schema(asked: Asked) -> Any:
    return error(lambda: asked.client.register_schema("d4-value", Schema('{"type": "nonsense"}', "AVRO")))


def types(asked: Asked) -> Any:
    return sorted(asked.http.get("/schemas/types").json())


def own_schemas(asked: Asked) -> Any:
    return "alerts.sim-value" in asked.client.get_subjects()


QUESTIONS: dict[str, tuple[Callable[[Asked], Any], Any]] = {
    "explicit id": (explicit_id, True),
    "same id again": (same_id_again, True),
    "serializer": (serializer, ({"x": 3}, b"\x06")),
    "wire id": (wire_id, True),
    "our client": (our_client, {"x": 3}),
    "look up": (look_up, ("c6-value", 1)),
    "latest": (latest, (2, [1, 2])),
    "by version": (by_version, ("c8", True)),
    "incompatible": (incompatible, (False, 409)),
    "config": (config, "FULL"),
    "delete": (delete, ([1], False)),
    "unknown subject": (unknown_subject, (404, 40401)),
    "unknown version": (unknown_version, (404, 40402)),
    "unknown id": (unknown_id, (404, 40403)),
    "no schema": (no_schema, (422, 42201)),
    "types": (types, ["AVRO"]),
    "own schemas": (own_schemas, True),
}
"""What is asked, and the right answer."""


@pytest.fixture(scope="module")
def ours(registry_url: str) -> Iterator[Asked]:
    """Yield our registry, on a real Kafka."""
    asked = Asked(registry_url)
    yield asked
    asked.close()


@pytest.fixture(scope="module")
def apicurio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    """Yield Apicurio, in memory."""
    java = shutil.which("java") or "java"
    log = tmp_path_factory.mktemp("apicurio") / "log"
    with running(java, log) as url:
        asked = Asked(url)
        yield asked
        asked.close()


@pytest.mark.kafka
@pytest.mark.parametrize("question", QUESTIONS)
def test_our_registry_answers_confluents_client(
    ours: Asked, question: str, monkeypatch: Any, tmp_path: Any
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    ask, answer = QUESTIONS[question]
    assert ask(ours) == answer


@pytest.mark.apicurio
@pytest.mark.parametrize("question", QUESTIONS)
def test_apicurio_answers_alike_but_where_we_know(
    apicurio: Asked, question: str, monkeypatch: Any, tmp_path: Any
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    ask, answer = QUESTIONS[question]
    assert ask(apicurio) == DIFFERS.get(question, answer)
