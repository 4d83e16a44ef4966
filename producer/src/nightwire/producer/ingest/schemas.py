"""The schemas of a survey: in its own registry, perhaps with a password, and copied to ours."""

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from nightwire.producer.replay.schema_ids import SchemaIds, canonical
from nightwire.schemas import (
    Codec,
    RegistryAwayError,
    SchemaError,
    SchemaRegistry,
    UnknownSchemaError,
    topics,
)

log = logging.getLogger("nightwire.ingest")

USER, PASSWORD = "NIGHTWIRE_SOURCE_REGISTRY_USER", "NIGHTWIRE_SOURCE_REGISTRY_PASSWORD"
"""Variables with the credentials (HTTP basic authentication)."""


@contextmanager
def source_registry(url: str | None, env: Mapping[str, str] = os.environ) -> Iterator[SchemaRegistry | None]:
    """Yield the registry at *url*; None where there is none."""
    if url is None:
        yield None
        return
    import httpx  # takes 0.1 s to import

    class WithPassword(httpx.HTTPTransport):
        """Adds the password; not in the URL, which errors show."""

        def handle_request(self, request: httpx.Request) -> httpx.Response:
            login = httpx.BasicAuth(env.get(USER, ""), env.get(PASSWORD, ""))
            return super().handle_request(next(login.auth_flow(request)))

    transport = WithPassword() if USER in env else None
    with SchemaRegistry(url, transport=transport) as registry:
        yield registry


class Schemas:
    """The schemas of a survey, from its own registry and ours.

    Args:
        ours: The registry for readers of ``alerts.<survey>``.
        theirs: The survey's own registry; None where it has none.
        survey: Name of the survey.
    """

    def __init__(self, ours: SchemaRegistry, theirs: SchemaRegistry | None, survey: str) -> None:
        self._ours, self._theirs = ours, theirs
        self._subject = f"{topics.alerts(survey)}-value"
        self._embedded = SchemaIds(ours, survey)
        self._codecs: dict[int, Codec] = {}
        self._ids: dict[int, tuple[Mapping[str, Any], int]] = {}

    def codec(self, schema_id: int) -> Codec:
        """Return the codec of a schema by the survey's id; afterwards our registry has it too.

        Raises:
            RegistryAwayError: The schema is new, and one of the registries does not answer.
            UnknownSchemaError: Neither registry has it.
            SchemaError: Ours has another schema under that id.
        """
        if schema_id not in self._codecs:
            self._codecs[schema_id] = Codec(self._found(schema_id))
        return self._codecs[schema_id]

    def id(self, schema: Mapping[str, Any]) -> int:
        """Return the id of a container's schema; afterwards our registry has it too.

        Raises:
            RegistryAwayError: Ours does not answer.
            SchemaError: Ours refuses it.
        """
        # By identity, since containers share one object per schema, and comparing takes a
        # millisecond.
        known = self._ids.get(id(schema))
        if known is None:
            known = self._ids[id(schema)] = (schema, self._embedded.id(schema))
        return known[1]

    def _found(self, schema_id: int) -> Mapping[str, Any]:
        if self._theirs is None:
            return self._ours.schema(schema_id)
        try:
            schema = self._theirs.schema(schema_id)
        except UnknownSchemaError as error:
            try:
                return self._ours.schema(schema_id)
            except UnknownSchemaError as here:
                raise type(error)(f"{error}; {here}") from error
        self._copy(schema_id, schema)
        return schema

    def _copy(self, schema_id: int, schema: Mapping[str, Any]) -> None:
        try:
            self._ours.register(self._subject, schema, schema_id=schema_id)
        except RegistryAwayError as error:
            self._ours.schema(schema_id)  # raises the same where it was never there
            log.warning("schema %d is not copied anew: %s", schema_id, error)
        except SchemaError:
            # Theirs may serve a schema without its defaults and docs; what matters is how bytes are
            # read.
            if canonical(self._ours.schema(schema_id)) != canonical(schema):
                raise
        else:
            log.info("schema %d is copied from the survey's registry", schema_id)


class SchemaPatience:
    """Decides how long an alert waits for its schema.

    An alert waits for a registry that does not answer as long as it takes.  A registry that answers
    without the schema may be empty for a moment, as Rubin's is at each deployment: alerts wait once
    for each schema.

    Args:
        limit: Longest wait for a schema that no registry has. [s]
    """

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._since: dict[str, float] = {}

    def is_out(self, error: SchemaError, schema: str, now: float) -> bool:
        """Whether the wait for *schema* is over.

        Args:
            error: The latest one about the schema.
            schema: Its name, by `schema_of`.
            now: Monotonic time. [s]
        """
        since = self._since.setdefault(schema, now)
        return not isinstance(error, RegistryAwayError) and now - since >= self._limit

    def found(self, schema: str) -> None:
        """Note that *schema* was found, so that alerts may wait for it again."""
        self._since.pop(schema, None)
