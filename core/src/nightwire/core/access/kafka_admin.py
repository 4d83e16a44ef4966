"""Asking Kafka what principals have, and giving or taking it: the only file here that calls Kafka."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from nightwire.core.access.changes import AccessPart, PrincipalState, Step
from nightwire.core.access.may_read import believes_everybody
from nightwire.core.access.quotas import quotas, set_quota
from nightwire.core.access.rights import Grant, Kind, Operation, Resource
from nightwire.core.kafka import admin, ensure_topics, read_to_end
from nightwire.schemas import records
from nightwire.schemas.topics import FILTERS, settings

PATIENCE = 30.0
"""Longest wait for an answer. [s]"""
ITERATIONS = 4096
"""Of SCRAM: Kafka's least.  Passwords that we make are too long to be guessed at any number."""

ACL_OPERATIONS = {Operation.READ: AclOperation.READ, Operation.WRITE: AclOperation.WRITE}
RESOURCE_TYPES = {Resource.TOPIC: ResourceType.TOPIC, Resource.GROUP: ResourceType.GROUP}
MECHANISM = ScramMechanism.SCRAM_SHA_512


class OpenKafkaError(Exception):
    """This Kafka believes everybody, so rights mean nothing; the message says how to change that."""


class AccessAdmin:
    """Gives principals of one Kafka what they are to have.

    Args:
        bootstrap: Kafka's address; we must be a super user of it.
    """

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._client = admin(bootstrap)

    def standing(self, name: str, topics: Iterable[str] = (), *, with_quota: bool = True) -> PrincipalState:
        """Return what principal *name* has.

        Args:
            name: Its user name.
            topics: Topics that are to be looked for.
            with_quota: Ask for its quota, which takes Java's time; else it is None.

        Raises:
            OpenKafkaError: This Kafka believes everybody.
            QuotaError: Its quota cannot be asked.
            KafkaException: Kafka cannot be reached, or does not let us.
        """
        self._check_guarded()
        known = self._grants(name).get(name, frozenset())
        there = self._client.list_topics(timeout=PATIENCE).topics
        found = frozenset(topic for topic in topics if topic in there)
        entered = name in self._users()
        limited = with_quota and (entered or known)
        limit = quotas(self._bootstrap, name).get(name) if limited else None
        return PrincipalState(name, entered, known, limit, found)

    def everybody(self, kind: Kind) -> list[PrincipalState]:
        """Return all principals of a *kind*, by name.

        Raises:
            OpenKafkaError: This Kafka believes everybody.
            QuotaError: Quotas cannot be asked.
            KafkaException: Kafka cannot be reached, or does not let us.
        """
        self._check_guarded()
        grants, users, limits = self._grants(), self._users(), quotas(self._bootstrap)
        found = [
            PrincipalState(name, name in users, grants[name], limits.get(name)) for name in sorted(grants)
        ]
        return [one for one in found if one.kind is kind]

    def do(self, name: str, steps: Sequence[Step], *, adding: bool, password: str = "") -> None:
        """Do *steps* for principal *name*: what lets it in comes last, and goes first.

        Args:
            name: Its user name.
            steps: What `additions` or `removals` found.
            adding: Whether they give or take.
            password: The one that is set, where a step sets one.

        Raises:
            QuotaError: Its quota cannot be set.
            KafkaException: Kafka refused a step, or cannot be reached.
        """
        ensure_topics(self._bootstrap, [settings(step.topic) for step in steps if step.topic])
        credential = [step for step in steps if step.part is AccessPart.PASSWORD]
        if credential and not adding:
            self._set_password(name, None)
        if grants := [step.grant for step in steps if step.grant]:
            self._allow(name, grants) if adding else self._deny(name)
        for step in steps:
            if step.part is AccessPart.QUOTA:
                set_quota(self._bootstrap, name, step.quota)
        if credential and adding:
            self._set_password(name, password)

    def live_filters(self, owner: str) -> list[str]:
        """Return the names of the filters of *owner* that run now.

        Raises:
            KafkaException: Kafka cannot be reached.
        """
        live: dict[str, bool] = {}
        for message in read_to_end(self._bootstrap, [FILTERS]):
            who, _, name = (message.key() or b"").decode().partition("/")
            if who == owner and "/" not in name and (value := message.value()) is not None:
                live[name] = bool(records.FILTER.decode(value)["live"])
        return sorted(name for name, is_live in live.items() if is_live)

    def _users(self) -> frozenset[str]:
        return frozenset(self._client.describe_user_scram_credentials().result(PATIENCE))  # type: ignore[union-attr]

    def _grants(self, name: str | None = None) -> dict[str, frozenset[Grant]]:
        bindings = self._client.describe_acls(_all_of(name)).result(PATIENCE)
        found: dict[str, set[Grant]] = defaultdict(set)
        for binding in bindings:
            if (grant := _grant(binding)) is not None:
                found[binding.principal.removeprefix("User:")].add(grant)
        return {user: frozenset(grants) for user, grants in found.items()}

    def _check_guarded(self) -> None:
        """Look whether there is an authorizer, and whether it lets us ask.

        Where it does not, librdkafka tells of no rights as if nobody had any, and aborts the process when
        it is asked for users.

        Raises:
            OpenKafkaError: There is none.
            KafkaException: It does not let us.
        """
        if believes_everybody(self._client):
            raise OpenKafkaError(
                f"Kafka at {self._bootstrap} believes everybody, so nobody can be given rights: "
                "`nightwire up --auth scram` asks for passwords"
            )

    def _allow(self, name: str, grants: Iterable[Grant]) -> None:
        for future in self._client.create_acls([_binding(name, grant) for grant in grants]).values():
            future.result(PATIENCE)

    def _deny(self, name: str) -> None:
        """Take every right from *name*, those that somebody else gave it among them."""
        for future in self._client.delete_acls([_all_of(name)]).values():
            future.result(PATIENCE)

    def _set_password(self, name: str, password: str | None) -> None:
        info = ScramCredentialInfo(MECHANISM, ITERATIONS)
        change = (
            UserScramCredentialDeletion(name, MECHANISM)
            if password is None
            else UserScramCredentialUpsertion(name, info, password.encode())
        )
        for future in self._client.alter_user_scram_credentials([change]).values():
            future.result(PATIENCE)


def _all_of(name: str | None) -> AclBindingFilter:
    """Return what matches every right of principal *name*; of everybody without one."""
    who: Any = f"User:{name}" if name else None
    whatever: Any = None
    pattern, deed, leave = ResourcePatternType.ANY, AclOperation.ANY, AclPermissionType.ANY
    return AclBindingFilter(ResourceType.ANY, whatever, pattern, who, whatever, deed, leave)


def _binding(name: str, grant: Grant) -> AclBinding:
    pattern = ResourcePatternType.PREFIXED if grant.prefixed else ResourcePatternType.LITERAL
    resource, operation = RESOURCE_TYPES[grant.what], ACL_OPERATIONS[grant.deed]
    allow = AclPermissionType.ALLOW
    return AclBinding(resource, grant.name, pattern, f"User:{name}", "*", operation, allow)


def _grant(binding: AclBinding) -> Grant | None:
    """Return what *binding* allows; None where it is nothing that we give."""
    deed = next((deed for deed, operation in ACL_OPERATIONS.items() if operation is binding.operation), None)
    what = next((what for what, resource in RESOURCE_TYPES.items() if resource is binding.restype), None)
    if deed is None or what is None or binding.permission_type is not AclPermissionType.ALLOW:
        return None
    return Grant(binding.name, deed, what, binding.resource_pattern_type is ResourcePatternType.PREFIXED)
