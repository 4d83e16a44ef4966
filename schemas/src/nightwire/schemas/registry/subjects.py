"""What a schema registry knows, as a fold over the records of its log.  Pure.

Rule 1: what is true is decided here alone, by `Subjects.apply`, record by record in the order of
the log.
Rule 2: so every server that has read as far says the same, whoever wrote the records.

The records of `_schemas` are JSON, one of (keys in brackets)::

    {"do": "register", "proposal": P, "subject": S, "schema": TEXT, "id": N, "explicit": bool}   [P]
    {"do": "delete", "proposal": P, "subject": S, "version": N or null = all}                    [P]
    {"do": "purge", "proposal": P, "subject": S, "version": N or null = all}                     [P]
    {"do": "config", "proposal": P, "subject": S or null, "compatibility": LEVEL or null}
    ["config S"] {"do": "mode", "proposal": P, "subject": S or null, "mode": MODE or null}
    ["mode S"]

A proposal (P, a random text) is the key of its record, so compaction never takes one away: which of
two proposals of the same id came first stays decided for ever.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from nightwire.schemas.records import RECORDS, SIM_ALERT_ID, sim_alert_schema
from nightwire.schemas.registry.compatibility import LEVELS

FIRST_FREE_ID = 101_000
"""First id given to schemas that come without one.  100,000 to 100,999 are for nightwire's own."""

BUILT_IN = {
    "account": "accounts-value",
    "visit": "visits-value",
    "voevent": "voevents-value",
    "filter": "filters-value",
    "request": "nightwire.Request",
    "answer": "nightwire.Answer",
    "overflow": "nightwire.Overflow",
    "seen": "nightwire.Seen",
    "position": "vtp-positions-value",
    "entry": "directory-value",
    "subscription": "subscriptions-value",
    "channel": "nightwire.Channel",
    "mapping": "channels-value",
    "flow": "flows-value",
    "owed": "owed-value",
    "comment": "nightwire.Comment",
}
"""Subjects of the control records; requests and answers, which have many topics, by record."""


@dataclass(frozen=True)
class Version:
    """One version of a subject."""

    subject: str
    version: int
    id: int
    schema: str
    deleted: bool = False
    purged: bool = False


@dataclass(frozen=True)
class Rejected:
    """A record of the log that cannot hold, and why; *retryable* if with another id it might
    hold.
    """

    why: str
    retryable: bool = False


MODES = ("READWRITE", "READONLY", "IMPORT")
"""IMPORT is as READWRITE here: an id of one's own needs no mode."""

Outcome = Version | Rejected | list[int] | str


class Subjects:
    """Subjects, their versions, and all schemas by id."""

    def __init__(self) -> None:
        self.schemas: dict[int, str] = {}
        self.subjects: dict[str, list[Version]] = {}
        self._config: dict[str | None, str] = {None: "BACKWARD"}
        self._mode: dict[str | None, str] = {None: "READWRITE"}
        for record in RECORDS:
            for one in sorted(record.ids):
                self._add(BUILT_IN[record.name], one, json.dumps(record.schema_of(one)))
        self._add("alerts.sim-value", SIM_ALERT_ID, json.dumps(sim_alert_schema()))

    def compatibility(self, subject: str | None, *, inherit: bool = True) -> str | None:
        """Return the level of *subject*, or of all (None).

        Alerts (``alerts.…``) are as their survey makes them: NONE unless set.
        """
        if subject in self._config or not inherit:
            return self._config.get(subject)
        return "NONE" if subject and subject.startswith("alerts.") else self._config[None]

    def mode(self, subject: str | None, *, inherit: bool = True) -> str | None:
        """Return the mode of *subject*, or of all (None)."""
        return self._mode.get(subject, self._mode[None] if inherit else None)

    def versions(self, subject: str, *, deleted: bool = False) -> list[Version]:
        """Return the versions of *subject*, oldest first."""
        every = self.subjects.get(subject, ())
        return [one for one in every if not one.purged and (deleted or not one.deleted)]

    def names(self, *, deleted: bool = False) -> list[str]:
        """Return the subjects that have versions, sorted."""
        return sorted(subject for subject in self.subjects if self.versions(subject, deleted=deleted))

    def find(self, subject: str, schema: str, *, deleted: bool = False) -> Version | None:
        """Return the version of *subject* that has this schema."""
        wanted = fingerprint(schema)
        found = (one for one in self.versions(subject, deleted=deleted) if fingerprint(one.schema) == wanted)
        return next(found, None)

    def id_for(self, subject: str, schema: str) -> int:
        """Return the id to propose for a schema without one: that of an equal schema, or a free
        one.
        """
        wanted = fingerprint(schema)
        earlier = self.find(subject, schema, deleted=True)
        known = (number for number, text in sorted(self.schemas.items()) if fingerprint(text) == wanted)
        return earlier.id if earlier else next(known, max(FIRST_FREE_ID, max(self.schemas) + 1))

    def users(self, schema_id: int, *, deleted: bool = False) -> list[Version]:
        """Return the versions that have the schema of that id."""
        every = (
            one for subject in self.names(deleted=deleted) for one in self.versions(subject, deleted=deleted)
        )
        return [one for one in every if one.id == schema_id]

    def apply(self, record: Mapping[str, Any]) -> Outcome:
        """Take in the next record of the log and return what came of it.

        Raises:
            KeyError, TypeError, ValueError: It is no record of ours.
        """
        kind, subject = record["do"], record["subject"]
        if kind == "register":
            return self._register(
                str(subject), int(record["id"]), str(record["schema"]), bool(record["explicit"])
            )
        if kind == "delete":
            return self._delete(str(subject), record["version"])
        if kind == "purge":
            return self._purge(str(subject), record["version"])
        if kind == "config" and record["compatibility"] in (*LEVELS, None):
            return _set(self._config, subject, record["compatibility"], "BACKWARD")
        if kind == "mode" and record["mode"] in (*MODES, None):
            return _set(self._mode, subject, record["mode"], "READWRITE")
        raise ValueError(f"{kind!r}")

    def _register(self, subject: str, schema_id: int, schema: str, explicit: bool) -> Outcome:
        there = self.find(subject, schema)
        if there and explicit and there.id != schema_id:
            return Rejected(
                f"this schema is version {there.version} of {subject} already, with id {there.id}"
            )
        if there:
            return there
        taken = self.schemas.get(schema_id)
        if taken is not None and fingerprint(taken) != fingerprint(schema):
            return Rejected(f"id {schema_id} belongs to another schema", retryable=not explicit)
        return self._add(subject, schema_id, taken or schema)

    def _add(self, subject: str, schema_id: int, schema: str) -> Version:
        versions = self.subjects.setdefault(subject, [])
        new = Version(subject, len(versions) + 1, schema_id, schema)
        versions.append(new)
        self.schemas[schema_id] = schema
        return new

    def _purge(self, subject: str, version: int | None) -> Outcome:
        """Remove deleted versions from the subject.  Their schemas remain available by id."""
        gone = [one for one in self.versions(subject, deleted=True) if version in (None, one.version)]
        if not gone:
            return Rejected(f"{subject} has no such version")
        if any(not one.deleted for one in gone):
            return Rejected(f"{subject} was not deleted first before being deleted for good")
        for one in gone:
            self.subjects[subject][one.version - 1] = replace(one, purged=True)
        return [one.version for one in gone]

    def _delete(self, subject: str, version: int | None) -> Outcome:
        live = [one for one in self.versions(subject) if version in (None, one.version)]
        if not live:
            return Rejected(f"{subject} has no such version")
        for one in live:
            self.subjects[subject][one.version - 1] = replace(one, deleted=True)
        return [one.version for one in live]


def _set(settings: dict[str | None, str], subject: str | None, value: str | None, default: str) -> str:
    """Set or (None) unset a level or a mode; return the new value, or the one unset."""
    if value is not None:
        settings[subject] = value
        return value
    before = settings.pop(subject, default)
    settings.setdefault(None, default)
    return before


@lru_cache(maxsize=4096)
def fingerprint(schema: str) -> bytes:
    """Return a schema's hash, whatever its white space and order of keys."""
    canonical = json.dumps(json.loads(schema), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).digest()
