"""Schemas by id: a client of any registry that has Confluent's REST interface."""

import json
import logging
import time
import weakref
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote, urlsplit

from platformdirs import user_cache_path

from nightwire.schemas.avro.codec import Codec
from nightwire.schemas.avro.plans.schema import inlined
from nightwire.schemas.errors import RegistryAwayError, SchemaError, UnknownSchemaError
from nightwire.schemas.kafka_environment import properties
from nightwire.schemas.records import own_schema
from nightwire.schemas.topics import records_topic

if TYPE_CHECKING:
    import ssl

    import httpx
import hashlib
import os
import tempfile

log = logging.getLogger("nightwire.schemas")

TIMEOUT = 5.0
"""Longest wait for an answer. [s]"""
RETRY_DELAYS = (0.1, 0.5)
"""Waits before the second and third try. [s]"""
UNKNOWN_ID_SECONDS = 5.0
"""How long an unknown id is not asked for again, nor whose registry it is where nobody answers. [s]
Thousands of messages may have it."""
IDENTITY_SECONDS = 60.0
"""How long a registry counts as the same one where nothing went wrong. [s]"""
IDENTITY_TIMEOUT = 1.0
"""Longest wait for its name: alerts wait meanwhile, and it is asked again. [s]"""
RETRYABLE_STATUS = frozenset({429, 500, 502, 503, 504})
CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"


class SchemaRegistry:
    """Schemas of a registry, kept in memory and on disk.  Safe to share between threads.

    The schemas of nightwire's own records are built in and never asked for.  Others are asked for
    once per process; where the registry is away or has lost them, what the registry of the same
    Kafka gave before is taken from disk.  When the address becomes another Kafka's registry, what
    is kept in memory is forgotten: that is noticed within a minute, and after a `doubt` at the next
    lookup (not with a *cache_dir*, which belongs to one Kafka).

    Args:
        url: Address of the registry (``http://127.0.0.1:8081``); None where there is none.
        cache_dir: Folder of a disk cache that belongs to one Kafka; by default the user's, which
            has a folder for each Kafka.
        cluster_id: Returns the id of the registry's Kafka where the registry does not tell it, or
            None; by default nobody knows it then, and the user's cache is not used.
        login: Name and password for writing; by default those of ``KAFKA_SASL_USERNAME`` and
            ``KAFKA_SASL_PASSWORD``.  They go to no other machine without TLS, unless it is
            ``NIGHTWIRE_SCHEMA_REGISTRY_LOGIN`` (``NAME:PASSWORD``, or a token) that gives them.
        transport: Replaces the network in tests.
    """

    def __init__(
        self,
        url: str | None,
        *,
        cache_dir: Path | None = None,
        cluster_id: Callable[[], str | None] = lambda: None,
        login: tuple[str, str] | None = None,
        transport: "httpx.BaseTransport | None" = None,
    ) -> None:
        self.url = url
        self._disk = SchemaCache(cache_dir, url or "") if cache_dir else None
        self._cluster_id = cluster_id
        self._cluster: str | None = None
        self._ask_identity_at = float("inf")  # as long as nobody told whose schemas they are
        self._login = login or _login_of_kafka()
        self._transport = transport
        self._schemas: dict[int, dict[str, Any]] = {}
        self._codecs: dict[int, Codec] = {}
        self._silent = url is None
        self._missing: dict[int, tuple[float, type[UnknownSchemaError], str]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        if "_client" in vars(self):
            self._client.close()

    def register(self, subject: str, schema: Mapping[str, Any], *, schema_id: int | None = None) -> int:
        """Register *schema* under *subject* and return its id, the same for the same schema.

        Args:
            subject: By custom ``<topic>-value``.
            schema: Parsed JSON.
            schema_id: The id that it must get, where its survey has decided; else the registry
                chooses.

        Raises:
            SchemaError: The registry refuses it, or gave another id than *schema_id*.
            RegistryAwayError: The registry does not answer.
        """
        body: dict[str, Any] = {"schema": json.dumps(schema)}
        if schema_id is not None:
            body["id"] = schema_id
        given = int(self._request("POST", f"{_path(subject)}/versions", body)["id"])
        if schema_id not in (None, given):
            raise SchemaError(
                f"the registry at {self.url} gave {subject} the id {given} where {schema_id} was asked for: "
                "it takes no ids from outside"
            )
        self._remember(given, dict(schema))
        return given

    def schema(self, schema_id: int) -> dict[str, Any]:
        """Return the schema of that id.  It is shared: do not change it.

        Raises:
            UnknownSchemaError: Nobody knows it.
            RegistryAwayError: The registry does not answer, and it was never seen here.
        """
        self._notice_another_kafka()
        schemas = self._schemas
        known = schemas.get(schema_id) or own_schema(schema_id)
        if known is None:
            known = self._fetch(schema_id)
        schemas[schema_id] = known
        return known

    def registered(self, schema_id: int) -> dict[str, Any] | None:
        """Return the schema that the registry itself has under that id, never one of a cache.

        Raises:
            RegistryAwayError: The registry does not answer.
        """
        try:
            return self._parsed(self._request("GET", f"/schemas/ids/{schema_id}"))
        except RegistryAwayError:
            raise
        except UnknownSchemaError:
            return None

    def codec(self, schema_id: int) -> Codec:
        """Return the codec of that schema, made once.

        Raises:
            UnknownSchemaError: Nobody knows the schema.
            RegistryAwayError: The registry does not answer, and the schema was never seen here.
        """
        self._notice_another_kafka()
        codecs = self._codecs
        codec = codecs.get(schema_id)
        if codec is None:
            codec = codecs[schema_id] = Codec(self.schema(schema_id))
        return codec

    def doubt(self) -> None:
        """Ask at the next lookup whose registry this is: a connection to its Kafka was lost."""
        if self._cluster is not None:
            self._ask_identity_at = float("-inf")

    def subjects(self) -> list[str]:
        """Return the registry's subjects.

        Raises:
            RegistryAwayError: The registry does not answer.
        """
        return list(self._request("GET", "/subjects"))

    def latest(self, subject: str) -> tuple[int, int, dict[str, Any]]:
        """Return version, id and schema of the latest version of *subject*.

        Raises:
            UnknownSchemaError: There is no such subject.
            RegistryAwayError: The registry does not answer.
        """
        return self.version(subject)

    def version(self, subject: str, version: int | str = "latest") -> tuple[int, int, dict[str, Any]]:
        """Return version, id and schema of one version of *subject*.

        Raises:
            UnknownSchemaError: There is no such subject or version.
            RegistryAwayError: The registry does not answer.
        """
        answer = self._request("GET", f"{_path(subject)}/versions/{version}")
        return int(answer["version"]), int(answer["id"]), self._parsed(answer)

    def of_survey(self, name: str) -> Iterator[dict[str, Any]]:
        """Yield the schemas of a survey's alerts that it has, the newest first."""
        subject = f"{records_topic(name)}-value"
        with suppress(UnknownSchemaError):  # none came yet, or the registry is away
            newest, _, schema = self.latest(subject)
            yield schema
            for version in range(newest - 1, 0, -1):
                with suppress(UnknownSchemaError):  # it was deleted
                    yield self.version(subject, version)[2]

    def look_up(self, subject: str, schema: Mapping[str, Any]) -> tuple[int, int]:
        """Return version and id under which *subject* has *schema*.

        Raises:
            UnknownSchemaError: It does not have it.
            RegistryAwayError: The registry does not answer.
        """
        answer = self._request("POST", _path(subject), {"schema": json.dumps(schema)})
        return int(answer["version"]), int(answer["id"])

    def compatibility(self, subject: str | None = None) -> str:
        """Return the compatibility level of *subject*, or of all (``BACKWARD``, ``NONE``, …).

        Raises:
            RegistryAwayError: The registry does not answer.
        """
        which = f"/{quote(subject, safe='')}?defaultToGlobal=true" if subject else ""
        return str(self._request("GET", f"/config{which}")["compatibilityLevel"])

    def set_compatibility(self, level: str, subject: str | None = None) -> None:
        """Set the compatibility level of *subject*, or of all.

        Raises:
            SchemaError: There is no such level; names those there are.
            RegistryAwayError: The registry does not answer.
        """
        which = f"/{quote(subject, safe='')}" if subject else ""
        self._request("PUT", f"/config{which}", {"compatibility": level})

    def may_follow(self, subject: str, schema: Mapping[str, Any]) -> list[str]:
        """Return why *schema* may not be the next version of *subject*; empty where it may.

        Raises:
            UnknownSchemaError: There is no such subject.
            RegistryAwayError: The registry does not answer.
        """
        path = f"/compatibility{_path(subject)}/versions/latest?verbose=true"
        answer = self._request("POST", path, {"schema": json.dumps(schema)})
        return [] if answer["is_compatible"] else list(answer.get("messages") or ["it is not compatible"])

    def _fetch(self, schema_id: int) -> dict[str, Any]:
        since, kind, why = self._missing.get(schema_id, (float("-inf"), UnknownSchemaError, ""))
        if time.monotonic() - since < UNKNOWN_ID_SECONDS:
            raise kind(why)  # a new one: one that is raised again keeps all frames it met
        try:
            schema = self._parsed(self._request("GET", f"/schemas/ids/{schema_id}"))
        except UnknownSchemaError as error:
            if (cached := self._cached(schema_id)) is not None:
                return cached
            self._missing[schema_id] = (time.monotonic(), type(error), str(error))
            raise
        self._remember(schema_id, schema)
        return schema

    def _parsed(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        """Return the schema of an answer, with its references inserted."""
        return dict(inlined(_schema_in(answer), self._parts(answer)))

    def _parts(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        """Return the schemas that an answer's schema refers to, directly or not, by name."""
        parts: dict[str, Any] = {}
        for one in answer.get("references") or ():
            part = self._request("GET", f"{_path(one['subject'])}/versions/{one['version']}")
            parts |= self._parts(part) | {one["name"]: _schema_in(part)}
        return parts

    def _remember(self, schema_id: int, schema: dict[str, Any]) -> None:
        self._schemas[schema_id] = schema
        self._missing.pop(schema_id, None)
        if cache := self._cache():
            cache.save(schema_id, schema)

    def _cache(self) -> "SchemaCache | None":
        """Return the disk cache; None as long as it is unknown whose schemas they are."""
        if self._disk is None and (cluster := self._told_cluster() or self._cluster_id()):
            self._belongs_to(cluster)
        return self._disk

    def _cached(self, schema_id: int) -> dict[str, Any] | None:
        """Return the schema that the disk has, unless another Kafka answers by now."""
        cache = self._cache()
        if cache is None or (known := cache.load(schema_id)) is None:
            return None
        self.doubt()
        self._notice_another_kafka()
        return known if self._disk is cache else None

    def _belongs_to(self, cluster: str) -> None:
        self._cluster = cluster
        self._disk = SchemaCache(user_cache_path("nightwire") / "schemas", cluster)
        self._ask_identity_at = time.monotonic() + IDENTITY_SECONDS

    def _notice_another_kafka(self) -> None:
        """Forget all schemas where another Kafka's registry has the address now."""
        if time.monotonic() < self._ask_identity_at:
            return
        self._ask_identity_at = time.monotonic() + IDENTITY_SECONDS
        if (cluster := self._told_cluster() or self._cluster_id()) is None:
            self._ask_identity_at = time.monotonic() + UNKNOWN_ID_SECONDS
            return
        if cluster == self._cluster:
            return
        log.warning("%s is the registry of another Kafka now: schemas are asked for again", self.url)
        self._schemas, self._codecs, self._missing = {}, {}, {}  # new: other threads may hold the old
        self._belongs_to(cluster)

    def _told_cluster(self) -> str | None:
        """Return the id of the registry's Kafka, as Confluent's registries tell it; else None."""
        if self._silent:
            return None
        try:
            answer = self._request("GET", "/v1/metadata/id", pauses=(), timeout=IDENTITY_TIMEOUT)
            return str(answer["scope"]["clusters"]["kafka-cluster"])
        except RegistryAwayError:
            return None  # it may tell it later
        except (SchemaError, LookupError, TypeError):
            self._silent = True
            return None

    def _request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        pauses: Sequence[float] = RETRY_DELAYS,
        timeout: float = TIMEOUT,
    ) -> Any:
        if self.url is None:
            raise RegistryAwayError(f"{path}: no schema registry is configured; name one with --registry")
        response = self._with_retries(method, path, body, pauses, timeout)
        if response.status_code == HTTPStatus.NOT_FOUND:
            raise UnknownSchemaError(f"the registry at {self.url} does not have {path}: {_message(response)}")
        if response.is_error:
            raise SchemaError(f"the registry at {self.url} refuses {method} {path}: {_message(response)}")
        return response.json()

    @cached_property
    def _client(self) -> "httpx.Client":
        import httpx  # takes 0.1 s to import, and many processes never ask

        url = self.url or ""
        client = httpx.Client(
            base_url=url,
            timeout=TIMEOUT,
            transport=self._transport,
            verify=urlsplit(url).scheme == "https" and _trusted(),  # certificates take 30 ms to read
        )
        weakref.finalize(self, client.close)
        return client

    def _authorization(self, method: str) -> dict[str, str]:
        """Return the header that lets a request in that writes, unless others could read it on its
        way.
        """
        url = urlsplit(self.url or "")
        private = url.scheme == "https" or url.hostname in ("localhost", "127.0.0.1", "::1")
        named = os.environ.get("NIGHTWIRE_SCHEMA_REGISTRY_LOGIN", "")
        login = named or (":".join(self._login) if self._login and private else "")
        if method == "GET" or not login:
            return {}
        said = f"Basic {b64encode(login.encode()).decode()}" if ":" in login else f"Bearer {login}"
        return {"Authorization": said}

    def _with_retries(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        pauses: Sequence[float],
        timeout: float,
    ) -> "httpx.Response":
        """Ask until there is an answer, or the last try has failed."""
        from httpx import TransportError

        why: object = ""
        for pause in (*pauses, None):
            try:
                headers = {"Accept": CONTENT_TYPE, **self._authorization(method)}
                response = self._client.request(method, path, json=body, headers=headers, timeout=timeout)
            except TransportError as error:
                why = f"{type(error).__name__} {error}"
            else:
                if response.status_code not in RETRYABLE_STATUS:
                    return response
                why = _message(response)
            if pause is not None:
                time.sleep(pause)
        raise RegistryAwayError(f"the registry at {self.url} does not answer {method} {path}: {why}")


def _trusted() -> "ssl.SSLContext":
    """Return whom to believe: whom the machine believes, and the authority of our Kafka's
    certificate.
    """
    import httpx

    context, kafka = httpx.create_ssl_context(), properties()
    file, text = kafka.get("ssl.ca.location"), kafka.get("ssl.ca.pem")
    if text or (file and Path(file).is_file()):
        context.load_verify_locations(cadata=text, cafile=None if text else file)
    return context


def _login_of_kafka() -> tuple[str, str] | None:
    known = properties()
    name, password = known.get("sasl.username"), known.get("sasl.password")
    return (name, password) if name and password else None


def _schema_in(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an answer, as it was registered."""
    if answer.get("schemaType", "AVRO") != "AVRO":
        raise SchemaError(f"the schema is {answer['schemaType']}, which nightwire does not read")
    schema = json.loads(answer["schema"])
    if not isinstance(schema, dict):
        raise SchemaError(f"the schema is not that of a record: {schema!r}")
    return schema


def _path(subject: str) -> str:
    return f"/subjects/{quote(subject, safe='')}"


def _message(response: "httpx.Response") -> str:
    try:
        return str(response.json()["message"])
    except (ValueError, KeyError, TypeError):
        return f"HTTP {response.status_code}"


class SchemaCache:
    """One folder per owner, one JSON file per id.  Losing it costs nothing but a request.

    Args:
        folder: Where the folders of all owners lie; made when first needed.
        owner: Whose schemas they are: the id of a Kafka, or the address of its registry.
    """

    def __init__(self, folder: Path, owner: str) -> None:
        self.folder = folder / hashlib.sha256(owner.rstrip("/").encode()).hexdigest()[:16]

    def load(self, schema_id: int) -> dict[str, Any] | None:
        """Return the schema of that id, or None where it is not here or not readable."""
        try:
            schema = json.loads((self.folder / f"{schema_id}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return schema if isinstance(schema, dict) else None

    def save(self, schema_id: int, schema: dict[str, Any]) -> None:
        """Keep *schema*, whole or not at all; not at all on a full or read-only disk."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=self.folder, suffix=".tmp")
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(schema, file)
            Path(name).replace(self.folder / f"{schema_id}.json")
        except OSError:
            return
