"""Confluent's REST interface to a registry, without HTTP: requests in, JSON out.

Error codes are Confluent's: 404xx not found, 409 incompatible, 422xx not to be done, 503xx Kafka is
away.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from nightwire.schemas.avro.plans.schema import inlined, parse
from nightwire.schemas.errors import SchemaError
from nightwire.schemas.registry.compatibility import LEVELS, incompatibilities
from nightwire.schemas.registry.store import Log, Store, UnavailableError
from nightwire.schemas.registry.subjects import MODES, Rejected, Subjects, Version
from nightwire.schemas.topics import SCHEMAS


class ApiError(Exception):
    """An error answer.  The HTTP status is the code's first three digits."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.status = int(str(code)[:3])


@dataclass(frozen=True)
class Request:
    """What is asked: parts of the path, options behind ``?``, the body, and who asks."""

    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    authorization: str = ""

    def flag(self, name: str) -> bool:
        """Whether an option is ``true``."""
        return self.query.get(name, "").lower() == "true"

    def json(self) -> dict[str, Any]:
        """Return the body.

        Raises:
            ApiError: It is no JSON object.
        """
        try:
            value = json.loads(self.body)
        except ValueError as error:
            raise ApiError(42201, f"the body is not JSON: {error}") from error
        if not isinstance(value, dict):
            raise ApiError(42201, "the body is not a JSON object")
        return value


class Api:
    """Answers, one method per endpoint, each raising `ApiError`.

    Args:
        store: What is known.
        log: Where proposals go.
        cluster_id: Returns the id of the Kafka that keeps the log; None while it is away.
    """

    def __init__(self, store: Store, log: Log, cluster_id: Callable[[], str | None] = lambda: None) -> None:
        self._store = store
        self._log = log
        self._cluster_id = cluster_id

    def identity(self, _request: Request) -> Any:
        """GET /v1/metadata/id: whose schemas these are, as Confluent's registry says it."""
        if (cluster := self._cluster_id()) is None:
            raise ApiError(50301, "Kafka has not told its id yet; try again")
        clusters = {"kafka-cluster": cluster, "schema-registry-cluster": SCHEMAS}
        return {"scope": {"path": [], "clusters": clusters}, "id": ""}

    def subjects(self, request: Request) -> Any:
        """GET /subjects"""
        prefix = request.query.get("subjectPrefix", "")
        with self._known_subjects() as known:
            names = known.names(deleted=request.flag("deleted"))
        return [name for name in names if name.startswith(prefix)]

    def look_up(self, request: Request) -> Any:
        """POST /subjects/S: which version has this schema."""
        subject, schema = request.path["subject"], self._posted(request)
        with self._known_subjects() as known:
            versions_of(known, subject, request)
            found = known.find(subject, schema, deleted=request.flag("deleted"))
        if found is None:
            raise ApiError(40403, f"Schema not found under subject {subject!r}")
        return version_json(found)

    def versions(self, request: Request) -> Any:
        """GET /subjects/S/versions"""
        with self._known_subjects() as known:
            return [one.version for one in versions_of(known, request.path["subject"], request)]

    def version(self, request: Request) -> Any:
        """GET /subjects/S/versions/N"""
        return version_json(self._version(request))

    def version_schema(self, request: Request) -> Any:
        """GET /subjects/S/versions/N/schema"""
        return json.loads(self._version(request).schema)

    def register(self, request: Request) -> Any:
        """POST /subjects/S/versions: register a schema, with the body's id or a free one."""
        subject, schema = request.path["subject"], self._posted(request)
        wanted = posted_id(request)
        with self._writable(subject) as known:
            there = known.find(subject, schema)
            if there and wanted in (None, there.id):
                return {"id": there.id}
            level = known.compatibility(subject)
            earlier = [json.loads(one.schema) for one in known.versions(subject)]
        if why := incompatibilities(str(level), json.loads(schema), earlier):
            raise ApiError(409, f"Schema is not compatible ({level}) with {subject!r}: {'; '.join(why)}")
        outcome = self._write(lambda: self._store.register(self._log, subject, schema, wanted))
        if isinstance(outcome, Rejected):
            raise ApiError(42205, outcome.why)
        return {"id": outcome.id}

    def delete(self, request: Request) -> Any:
        """DELETE /subjects/S[/versions/N][?permanent=true]: schemas remain available by id."""
        subject, for_good = request.path["subject"], request.flag("permanent")
        there = Request(request.path, {"deleted": str(for_good)})
        with self._writable(subject) as known:
            versions_of(known, subject, there)
        number = self._version(there).version if "version" in request.path else None
        change = {"do": "purge" if for_good else "delete", "subject": subject, "version": number}
        outcome = self._write(lambda: self._store.change(self._log, change))
        if isinstance(outcome, Rejected):
            raise ApiError((40405 if number is None else 40407) if for_good else 40402, outcome.why)
        return number if number is not None else outcome

    def schema(self, request: Request) -> Any:
        """GET /schemas/ids/ID"""
        return {"schema": self._schema(request)}

    def schema_text(self, request: Request) -> Any:
        """GET /schemas/ids/ID/schema"""
        return json.loads(self._schema(request))

    def schema_versions(self, request: Request) -> Any:
        """GET /schemas/ids/ID/versions"""
        return [{"subject": one.subject, "version": one.version} for one in self._users(request)]

    def schema_subjects(self, request: Request) -> Any:
        """GET /schemas/ids/ID/subjects"""
        return sorted({one.subject for one in self._users(request)})

    def types(self, _request: Request) -> Any:
        """GET /schemas/types"""
        return ["AVRO"]

    def mode(self, request: Request) -> Any:
        """GET /mode[/S]"""
        subject = request.path.get("subject")
        with self._known_subjects() as known:
            mode = known.mode(subject, inherit=subject is None or request.flag("defaultToGlobal"))
        if mode is None:
            raise ApiError(40409, f"Subject {subject!r} does not have subject-level mode configured")
        return {"mode": mode}

    def set_mode(self, request: Request) -> Any:
        """PUT /mode[/S]: READONLY refuses writes; IMPORT is accepted, and needed for nothing."""
        mode = str(request.json().get("mode", "")).upper()
        if mode not in MODES:
            raise ApiError(42204, f"Invalid mode {mode!r}; there are {', '.join(MODES)}")
        change = {"do": "mode", "subject": request.path.get("subject"), "mode": mode}
        self._write(lambda: self._store.change(self._log, change))
        return {"mode": mode}

    def unset_mode(self, request: Request) -> Any:
        """DELETE /mode/S: the mode of all holds again."""
        self.mode(request)
        change = {"do": "mode", "subject": request.path["subject"], "mode": None}
        return {"mode": self._write(lambda: self._store.change(self._log, change))}

    def unset_config(self, request: Request) -> Any:
        """DELETE /config[/S]: the level of all holds again."""
        self.config(request)
        change = {"do": "config", "subject": request.path.get("subject"), "compatibility": None}
        return {"compatibilityLevel": self._write(lambda: self._store.change(self._log, change))}

    def config(self, request: Request) -> Any:
        """GET /config[/S]"""
        subject = request.path.get("subject")
        with self._known_subjects() as known:
            level = known.compatibility(subject, inherit=request.flag("defaultToGlobal"))
        if level is None:
            raise ApiError(40408, f"Subject {subject!r} does not have subject-level compatibility configured")
        return {"compatibilityLevel": level}

    def set_config(self, request: Request) -> Any:
        """PUT /config[/S]"""
        level = str(request.json().get("compatibility", "")).upper()
        if level not in LEVELS:
            raise ApiError(42203, f"Invalid compatibility level {level!r}; there are {', '.join(LEVELS)}")
        change = {"do": "config", "subject": request.path.get("subject"), "compatibility": level}
        self._write(lambda: self._store.change(self._log, change))
        return {"compatibility": level}

    def compatible(self, request: Request) -> Any:
        """POST /compatibility/subjects/S/versions[/N]: whether a schema may follow."""
        subject, schema = request.path["subject"], json.loads(self._posted(request))
        with self._known_subjects() as known:
            level = str(known.compatibility(subject))
            earlier = known.versions(subject)
        if "version" in request.path:
            earlier = [self._version(request)]
        why = incompatibilities(level, schema, [json.loads(one.schema) for one in earlier])
        return {"is_compatible": not why, **({"messages": why} if request.flag("verbose") else {})}

    def no_associations(self, _request: Request) -> Any:
        """GET /associations/…: Confluent's clients ask, and take 404 for an older registry."""
        raise ApiError(404, "there are no associations here")

    def _posted(self, request: Request) -> str:
        """Return the schema in a request's body, with its references inserted."""
        body, parts = request.json(), {}
        for one in body.get("references") or ():
            try:
                path = {"subject": str(one["subject"]), "version": str(one["version"])}
                parts[str(one["name"])] = json.loads(self._version(Request(path)).schema)
            except (KeyError, TypeError) as error:
                raise ApiError(42201, f"a reference has name, subject and version, not {one!r}") from error
        return posted_schema(body, parts)

    def _version(self, request: Request) -> Version:
        number = request.path["version"]
        with self._known_subjects() as known:
            versions = versions_of(known, request.path["subject"], request)
        if number in ("latest", "-1"):
            return versions[-1]
        if not number.isdecimal() or int(number) == 0:
            raise ApiError(42202, f"The specified version {number!r} is not a valid version id")
        found = next((one for one in versions if one.version == int(number)), None)
        if found is None:
            raise ApiError(40402, f"Version {number} not found")
        return found

    def _schema(self, request: Request) -> str:
        number = request.path["id"]
        for lend in (self._store.subjects, self._known_subjects):  # what is known needs no wait
            with lend() as known:
                found = known.schemas.get(int(number)) if number.isdecimal() else None
            if found is not None:
                return found
        raise ApiError(40403, f"Schema {number} not found")

    def _users(self, request: Request) -> list[Version]:
        self._schema(request)
        with self._known_subjects() as known:
            return known.users(int(request.path["id"]), deleted=request.flag("deleted"))

    @contextmanager
    def _writable(self, subject: str) -> Iterator[Subjects]:
        """Lend the subjects for a look before a write, unless the mode forbids it."""
        with self._known_subjects() as known:
            if known.mode(subject) == "READONLY":
                raise ApiError(42205, f"Subject {subject!r} is in read-only mode")
            yield known

    def _known_subjects(self) -> AbstractContextManager[Subjects]:
        """Lend the subjects, once the log has been read to its end and none is missing."""
        if not self._store.await_ready():
            raise ApiError(50301, "the registry has not read its log yet: Kafka does not answer; try again")
        return self._store.subjects()

    def _write(self, write: Callable[[], Any]) -> Any:
        try:
            return write()
        except UnavailableError as error:
            raise ApiError(50302, f"nothing can be written now: {error}; try again") from error


def versions_of(known: Subjects, subject: str, request: Request) -> list[Version]:
    """Return the versions of a subject.

    Raises:
        ApiError: There is no such subject.
    """
    found: list[Version] = known.versions(subject, deleted=request.flag("deleted"))
    if not found:
        raise ApiError(40401, f"Subject {subject!r} not found")
    return found


def posted_schema(body: Mapping[str, Any], parts: dict[str, Any]) -> str:
    """Return the schema in a request's body, with the schemas *parts* inserted.

    Raises:
        ApiError: It is not an Avro schema.
    """
    text = body.get("schema")
    if body.get("schemaType", "AVRO") not in ("AVRO", None):
        raise ApiError(42201, "only Avro schemas are taken")
    if not isinstance(text, str):
        raise ApiError(42201, "Empty schema: the body has no text named 'schema'")
    try:
        schema = json.loads(text)
        text = json.dumps(inlined(schema, parts)) if parts else text
        parse(json.loads(text))
    except (ValueError, SchemaError) as error:
        raise ApiError(42201, f"Invalid schema: {error}") from error
    return text


def posted_id(request: Request) -> int | None:
    """Return the id that a body names.

    Raises:
        ApiError: It does not fit into a message's header.
    """
    wanted = request.json().get("id")
    if wanted in (None, -1, 0):
        return None
    if not isinstance(wanted, int) or isinstance(wanted, bool) or not 0 < wanted < 1 << 31:
        raise ApiError(42206, f"id {wanted!r} is not a number from 1 to {(1 << 31) - 1}")
    return wanted


def version_json(one: Version) -> dict[str, Any]:
    """Return a version as JSON."""
    return {"subject": one.subject, "version": one.version, "id": one.id, "schema": one.schema}
