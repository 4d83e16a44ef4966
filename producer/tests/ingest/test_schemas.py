"""A survey's schemas in two registries: copied once, under their own ids, whichever is away."""

import json
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import httpx
import pytest

from nightwire.producer.ingest.schemas import Schemas, source_registry
from nightwire.schemas import RegistryAwayError, SchemaError, SchemaRegistry, UnknownSchemaError
from producer.tests.ingest.survey_kafka import ID, ZTF_SCHEMA, lsst_schema
from tests._serving import answering


class Played(httpx.BaseTransport):
    """A registry: schemas by id; takes what is registered, unless another schema has the id."""

    def __init__(self, schemas: Mapping[int, Any]) -> None:
        self.schemas = dict(schemas)
        self.away = False
        self.asked: list[str] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer as Confluent's interface does."""
        if self.away:
            raise httpx.ConnectError("refused")
        self.asked.append(f"{request.method} {request.url.path}")
        if request.method == "POST":
            return self._register(json.loads(request.content))
        number = int(request.url.path.rpartition("/")[2])
        if number not in self.schemas:
            return httpx.Response(404, json={"error_code": 40403, "message": "not found"})
        return httpx.Response(200, json={"schema": json.dumps(self.schemas[number])})

    def _register(self, body: Mapping[str, Any]) -> httpx.Response:
        number, schema = body.get("id", 101_000), json.loads(body["schema"])
        if self.schemas.setdefault(number, schema) != schema:
            return httpx.Response(409, json={"error_code": 409, "message": "belongs to another schema"})
        return httpx.Response(200, json={"id": number})


class Both:
    """Two registries, and the caches of two processes."""

    def __init__(self, folder: Path, ours: Mapping[int, Any], theirs: Mapping[int, Any]) -> None:
        self.folder, self.ours, self.theirs = folder, Played(ours), Played(theirs)

    def process(self) -> Schemas:
        """Return what a process that starts now knows."""
        ours = SchemaRegistry("http://ours", cache_dir=self.folder, transport=self.ours)
        theirs = SchemaRegistry("http://theirs", cache_dir=self.folder, transport=self.theirs)
        return Schemas(ours, theirs, "lsst")


def test_a_schema_is_copied_once_under_its_own_id(tmp_path: Path) -> None:
    both = Both(tmp_path, {}, {ID: lsst_schema()})
    schemas = both.process()
    assert [schemas.codec(ID).schema for _ in range(3)] == [lsst_schema()] * 3
    assert both.ours.schemas == {ID: lsst_schema()}
    assert both.ours.asked == ["POST /subjects/alerts.lsst-value/versions"]
    assert both.theirs.asked == [f"GET /schemas/ids/{ID}"]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["away", "emptied"])
def test_what_was_seen_once_needs_their_registry_no_more(tmp_path: Path, how: str) -> None:
    both = Both(tmp_path, {}, {ID: lsst_schema()})
    both.process().codec(ID)
    both.theirs.away, both.theirs.schemas = how == "away", {}
    assert both.process().codec(ID).schema == lsst_schema()


@pytest.mark.slow
def test_ours_may_be_away_too_once_it_had_the_schema(tmp_path: Path) -> None:
    both = Both(tmp_path, {}, {ID: lsst_schema()})
    both.process().codec(ID)
    both.ours.away = True
    assert both.process().codec(ID).schema == lsst_schema()


def test_an_operator_may_register_a_schema_with_us_alone(tmp_path: Path) -> None:
    both = Both(tmp_path, {ID: lsst_schema()}, {})
    assert both.process().codec(ID).schema == lsst_schema()


@pytest.mark.slow
def test_a_schema_that_was_never_seen_waits_for_whoever_is_away(tmp_path: Path) -> None:
    both = Both(tmp_path, {}, {})
    with pytest.raises(UnknownSchemaError) as unknown:
        both.process().codec(ID)
    assert not isinstance(unknown.value, RegistryAwayError)
    both.theirs.away = True
    with pytest.raises(RegistryAwayError):
        both.process().codec(ID)
    both.theirs.away, both.theirs.schemas, both.ours.away = False, {ID: lsst_schema()}, True
    with pytest.raises(RegistryAwayError):
        both.process().codec(ID)


def test_a_registry_that_strips_defaults_and_docs_has_the_same_schema(tmp_path: Path) -> None:
    full = lsst_schema(1) | {"doc": "with words"}
    bare = json.loads(json.dumps(lsst_schema(1)).replace(', "default": 0', ""))
    assert bare != lsst_schema(1)
    both = Both(tmp_path, {ID: full}, {ID: bare})
    assert both.process().codec(ID).schema == bare
    assert both.ours.schemas[ID] == full


def test_another_schema_under_the_same_id_is_refused(tmp_path: Path) -> None:
    both = Both(tmp_path, {ID: ZTF_SCHEMA}, {ID: lsst_schema()})
    with pytest.raises(SchemaError, match="belongs to another schema"):
        both.process().codec(ID)


def test_the_password_of_a_registry_is_sent_and_never_told() -> None:
    heard: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append(self.headers.get("Authorization"))
            self.send_error(418)

    env = {"NIGHTWIRE_SOURCE_REGISTRY_USER": "me", "NIGHTWIRE_SOURCE_REGISTRY_PASSWORD": "hush"}
    with answering(Handler) as url, source_registry(url, env) as registry:
        assert registry is not None
        with pytest.raises(SchemaError) as refused:
            registry.subjects()
    assert heard == ["Basic bWU6aHVzaA=="]
    assert "hush" not in f"{refused.value} {registry!r}"
