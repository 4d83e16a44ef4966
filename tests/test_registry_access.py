"""Schemas are read by everybody and written by whom Kafka lets write the subject's topic."""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import httpx
import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from nightwire.core.kafka import admin, ensure_topics
from nightwire.producer import AlertWriter
from nightwire.schemas import SchemaError, SchemaRegistry, sim_alert_schema
from nightwire.schemas.topics import settings
from tests._guarded_broker import Guarded, guarded_broker, keys_of, speaking_as

pytestmark = pytest.mark.kafka

SURVEY = ("rubin", "rubin's own password")
OWNER = ("ann", "ann's own password")
SUBJECT = "alerts.lsst-value"
TEXT = json.dumps({"type": "record", "name": "a", "fields": [{"name": "x", "type": "long"}]})


def lets_write(bootstrap: str, topic: str) -> None:
    """Make the user of a survey, who may write *topic*."""
    name, password = SURVEY
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    client = admin(bootstrap)
    client.alter_user_scram_credentials([UserScramCredentialUpsertion(name, info, password.encode())])[
        name
    ].result()
    rule = AclBinding(
        ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, f"User:{name}", "*",
        AclOperation.WRITE, AclPermissionType.ALLOW,
    )  # fmt: skip
    for future in client.create_acls([rule]).values():
        future.result()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with guarded_broker(tmp_path_factory.mktemp("guarded")) as one:
        assert one.run("user", "add", OWNER[0], "--quota", "0B", password=OWNER[1]).exit_code == 0
        with speaking_as(one.keys):
            names = ("alerts.lsst", "alerts.sim", "visits", "accounts", "dead-letters")
            ensure_topics(one.bootstrap, [settings(name) for name in names])
            lets_write(one.bootstrap, "alerts.lsst")
        yield one


@pytest.fixture(scope="module")
def url(guarded: Guarded, serve_registry: Callable[..., AbstractContextManager[str]]) -> Iterator[str]:
    with ExitStack() as stack:
        with speaking_as(guarded.keys):
            at = stack.enter_context(serve_registry(guarded.bootstrap))
        httpx.get(f"{at}/subjects", timeout=60)
        yield at


def posted(url: str, login: tuple[str, str] | None, subject: str = SUBJECT) -> httpx.Response:
    body = {"schema": TEXT}
    return httpx.post(f"{url}/subjects/{subject}/versions", json=body, auth=login, timeout=60)


@pytest.mark.parametrize(
    ("login", "subject", "status", "code"),
    [
        (None, SUBJECT, 401, 401),
        (("nobody", "x"), SUBJECT, 401, 401),
        ((SURVEY[0], "wrong"), SUBJECT, 401, 401),
        (OWNER, SUBJECT, 403, 40301),
        (SURVEY, "alerts.sim-value", 403, 40301),
        (SURVEY, "alerts.unknown-value", 403, 40301),
        (SURVEY, "nightwire.Request", 403, 40301),
    ],
)
def test_who_has_no_right_is_refused_as_confluent_refuses(
    url: str, login: tuple[str, str] | None, subject: str, status: int, code: int
) -> None:
    answer = posted(url, login, subject)
    assert (answer.status_code, answer.json()["error_code"]) == (status, code)
    assert ("WWW-Authenticate" in answer.headers) == (status == 401)
    assert subject in ("nightwire.Request", *read(url)) or subject not in read(url)


def read(url: str) -> list[str]:
    """Return the subjects, as somebody without a password."""
    found: list[str] = httpx.get(f"{url}/subjects", timeout=60).json()
    return found


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/config"), ("PUT", f"/config/{SUBJECT}"), ("DELETE", f"/config/{SUBJECT}"),
        ("PUT", "/mode"), ("DELETE", "/subjects/alerts.sim-value"),
        ("DELETE", "/subjects/alerts.sim-value/versions/1"),
    ],
)  # fmt: skip
def test_every_change_asks_who_is_there(url: str, method: str, path: str) -> None:
    assert httpx.request(method, f"{url}{path}", json={}, timeout=60).status_code == 401


def test_confluents_client_registers_with_its_basic_authentication(url: str) -> None:
    with SchemaRegistryClient({"url": url, "basic.auth.user.info": ":".join(SURVEY)}) as client:
        number = client.register_schema(SUBJECT, Schema(TEXT, "AVRO"))
    with SchemaRegistryClient({"url": url}) as client:
        assert client.get_schema(number).schema_str == TEXT


def registered(url: str, schema: dict[str, Any]) -> int:
    """Register *schema* as our client does, and return its id."""
    with SchemaRegistry(url) as client:
        return client.register(SUBJECT, schema)


def test_our_client_writes_with_the_names_of_kafka(guarded: Guarded, url: str) -> None:
    changed: dict[str, Any] = json.loads(TEXT) | {"doc": "another"}
    with pytest.raises(SchemaError, match="writing needs a name and a password"):
        registered(url, changed)
    with speaking_as(keys_of(*SURVEY)):
        assert registered(url, changed)
    with speaking_as(keys_of(*OWNER)), pytest.raises(SchemaError, match="ann has no right to write subject"):
        registered(url, changed | {"doc": "third"})


def test_an_alert_writer_registers_as_the_operator(guarded: Guarded, url: str) -> None:
    with speaking_as(guarded.keys):
        AlertWriter.connect("sim", sim_alert_schema(), bootstrap=guarded.bootstrap, registry=url).close()
    assert "alerts.sim-value" in read(url)


def test_a_password_goes_to_another_machine_by_tls_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200, json={"id": 1, "version": 1})

    def sent(url: str) -> bool:
        with SchemaRegistry(url, login=SURVEY, transport=httpx.MockTransport(answer)) as client:
            client.look_up(SUBJECT, json.loads(TEXT))
        return "Authorization" in asked[-1].headers

    assert not sent("http://registry.example.org:8081")
    assert sent("https://registry.example.org:8081")
    assert sent("http://127.0.0.1:8081")
    monkeypatch.setenv("NIGHTWIRE_SCHEMA_REGISTRY_LOGIN", "a:b")
    assert sent("http://registry:8081")
