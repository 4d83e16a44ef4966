"""The AsyncAPI document of a site, against what version 3.0 of the standard requires.

No package that is installed holds the standard's JSON schema, so what it requires is said here.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from directory.tests.sample import HOSTILE, TOPICS, fill
from nightwire.directory.answers.asyncapi import asyncapi
from nightwire.directory.model import View

KEYS = {
    "": {"asyncapi", "info", "defaultContentType", "servers", "channels", "operations"},
    "server": {"host", "protocol", "pathname", "title", "bindings"},
    "channel": {"address", "servers", "tags", "messages", "bindings"},
    "message": {"contentType", "payload", "bindings"},
    "operation": {"action", "channel", "title", "tags", "bindings"},
}
"""Fields of each object that the standard has, as far as we use them; others begin with ``x-``."""


@pytest.fixture
def document() -> Iterator[dict[str, Any]]:
    view = View()
    fill(view)
    yield json.loads(json.dumps(asyncapi(view, "local")))
    view.close()


def known(found: dict[str, Any], what: str) -> bool:
    return {key for key in found if not key.startswith("x-")} <= KEYS[what]


def resolved(document: dict[str, Any], reference: dict[str, str]) -> Any:
    (pointer,) = reference.values()
    found: Any = document
    for part in pointer.removeprefix("#/").split("/"):
        found = found[part]
    return found


def test_it_has_what_the_standard_requires(document: dict[str, Any]) -> None:
    assert known(document, "")
    assert document["asyncapi"] == "3.0.0"
    assert {"title", "version"} <= document["info"].keys()
    for server in document["servers"].values():
        assert {"host", "protocol"} <= server.keys() <= KEYS["server"]
    for channel in document["channels"].values():
        assert known(channel, "channel")
        assert all(known(message, "message") for message in channel["messages"].values())
        assert {resolved(document, one)["protocol"] for one in channel["servers"]} == {"kafka"}
    for operation in document["operations"].values():
        assert {"action", "channel"} <= operation.keys() <= KEYS["operation"]
        assert operation["action"] in ("send", "receive")
        assert resolved(document, operation["channel"]) in document["channels"].values()


def test_each_topic_is_a_channel_with_its_schema_in_the_registry(document: dict[str, Any]) -> None:
    assert document["channels"].keys() == {name for name, *_ in TOPICS}
    sim = document["channels"]["alerts.sim"]
    assert [tag["name"] for tag in sim["tags"]] == ["alerts", "sim"]
    assert sim["bindings"]["kafka"]["partitions"] == 8
    message = sim["messages"]["record"]
    assert message["payload"]["schema"] == {"$ref": "http://127.0.0.1:8081/schemas/ids/100100/schema"}
    assert message["bindings"]["kafka"]["schemaIdPayloadEncoding"] == "confluent"
    assert "payload" not in document["channels"]["filter.ann.snr"]["messages"]["record"]
    letters = document["channels"]["dead-letters"]["messages"]["record"]
    assert letters == {"contentType": "application/octet-stream"}


def test_servers_are_the_addresses_of_kafka_and_the_registry(document: dict[str, Any]) -> None:
    hosts = {name: server["host"] for name, server in document["servers"].items()}
    assert hosts == {"kafka-1": "127.0.0.1:9092", "kafka-2": "[::1]:9093", "registry": "127.0.0.1:8081"}


def test_writers_send_and_readers_receive_by_their_group(document: dict[str, Any]) -> None:
    operations = document["operations"]
    assert operations["send alerts.sim process stream"]["channel"] == {"$ref": "#/channels/alerts.sim"}
    assert operations[f"send alerts.sim producer {HOSTILE}"]["title"] == f"producer {HOSTILE}"
    reads = operations["receive filter.ann.snr consumer ann.reads"]
    assert reads["bindings"]["kafka"]["groupId"]["enum"] == ["ann.reads"]


def test_a_site_of_which_nothing_is_known_has_a_document() -> None:
    view = View()
    document = asyncapi(view, "nowhere")
    assert (document["servers"], document["channels"], document["operations"]) == ({}, {}, {})
    view.close()
