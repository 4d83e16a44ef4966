"""The streams of a site as an AsyncAPI document, version 3.0."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

from nightwire.core import __version__
from nightwire.directory.model import View

AVRO = "application/vnd.apache.avro"
AVRO_SCHEMA = f"{AVRO};version=1.9.0"
BINDING = "0.5.0"
"""Version of AsyncAPI's bindings for Kafka."""
WIRE = {
    "schemaIdLocation": "payload",
    "schemaIdPayloadEncoding": "confluent",
    "schemaLookupStrategy": "TopicIdStrategy",
    "bindingVersion": BINDING,
}
"""Confluent's wire format: a zero byte, the schema's id, the Avro body."""
NO_WIRE = frozenset({"dead-letters", "_schemas"})
"""Topics whose values are not in Confluent's wire format."""
STREAMS = """SELECT topic, kind, survey, partitions, schema_id, state, rate FROM streams
WHERE site = ? ORDER BY topic"""
FLOWS = """SELECT 'send' AS action, topic, kind, name FROM writers WHERE site = ?
UNION SELECT 'receive', topic, kind, name FROM readers WHERE site = ? ORDER BY topic, action, name"""


def asyncapi(view: View, site: str) -> dict[str, Any]:
    """Return the document of *site*: Kafka, registry, topics, and their writers and readers.

    Raises:
        QueryError: There are more streams, writers or readers than an answer may have rows.
    """
    found = view.query("SELECT bootstrap, registry FROM known_sites WHERE site = ?", site).rows
    bootstrap, registry = found[0] if found else ("", "")
    kafkas = _kafkas(bootstrap or "", registry or "")
    streams = view.query(STREAMS, site).records()
    topics = {stream["topic"] for stream in streams}
    flows = (one for one in view.query(FLOWS, site, site).records() if one["topic"] in topics)
    return {
        "asyncapi": "3.0.0",
        "info": {"title": f"Streams of {site}", "version": __version__},
        "defaultContentType": AVRO,
        "servers": kafkas | _registry(registry or ""),
        "channels": {one["topic"]: _channel(one, list(kafkas), registry or "") for one in streams},
        "operations": {
            f"{one['action']} {one['topic']} {one['kind']} {one['name']}": _operation(one) for one in flows
        },
    }


def _kafkas(bootstrap: str, registry: str) -> dict[str, Any]:
    binding = {"schemaRegistryUrl": registry, "schemaRegistryVendor": "confluent"} if registry else {}
    bindings = {"kafka": {**binding, "bindingVersion": BINDING}}
    addresses = filter(None, bootstrap.split(","))
    return {
        f"kafka-{n}": {"host": address, "protocol": "kafka", "bindings": bindings}
        for n, address in enumerate(addresses, 1)
    }


def _registry(url: str) -> dict[str, Any]:
    if not url:
        return {}
    where = urlsplit(url)
    found = {"host": where.netloc, "protocol": where.scheme or "http", "title": "Schema registry"}
    return {"registry": found | ({"pathname": where.path} if where.path else {})}


def _channel(stream: dict[str, Any], servers: Iterable[str], registry: str) -> dict[str, Any]:
    return {
        "address": stream["topic"],
        "servers": [{"$ref": f"#/servers/{name}"} for name in servers],
        "tags": [{"name": name} for name in dict.fromkeys((stream["kind"], stream["survey"])) if name],
        "messages": {"record": _message(stream, registry)},
        "bindings": {"kafka": {"partitions": stream["partitions"], "bindingVersion": BINDING}},
        "x-state": stream["state"],
        "x-records-per-second": stream["rate"],
        "x-schema-id": stream["schema_id"],
    }


def _message(stream: dict[str, Any], registry: str) -> dict[str, Any]:
    if stream["kind"] in NO_WIRE:
        return {"contentType": "application/octet-stream"}
    found = {"contentType": AVRO, "bindings": {"kafka": WIRE}}
    if stream["schema_id"] is None or not registry:
        return found
    schema = {"$ref": f"{registry.rstrip('/')}/schemas/ids/{stream['schema_id']}/schema"}
    return {**found, "payload": {"schemaFormat": AVRO_SCHEMA, "schema": schema}}


def _operation(flow: dict[str, Any]) -> dict[str, Any]:
    found = {
        "action": flow["action"],
        "channel": {"$ref": f"#/channels/{flow['topic']}"},
        "title": f"{flow['kind']} {flow['name']}",
        "tags": [{"name": flow["kind"]}],
    }
    if flow["kind"] != "consumer":
        return found
    group = {"type": "string", "enum": [flow["name"]]}
    return {**found, "bindings": {"kafka": {"groupId": group, "bindingVersion": BINDING}}}
