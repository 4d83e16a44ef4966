"""The principals of a Kafka are read and changed: all requests to Kafka but those for quotas."""

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
)

from nightwire.core.access.changes import AccessPart, PrincipalState, Step
from nightwire.core.access.may_read import is_open
from nightwire.core.access.passwords import INVITED, set_password
from nightwire.core.access.quotas import quotas, set_quota
from nightwire.core.access.rights import Grant, Kind, Operation, Resource
from nightwire.core.kafka import admin, ensure_topics, read_to_end
from nightwire.schemas import MendableError, records
from nightwire.schemas.topics import FILTERS, settings

TIMEOUT = 30.0
"""Longest wait for an answer. [s]"""

ACL_OPERATIONS = {Operation.READ: AclOperation.READ, Operation.WRITE: AclOperation.WRITE}
RESOURCE_TYPES = {Resource.TOPIC: ResourceType.TOPIC, Resource.GROUP: ResourceType.GROUP}


class OpenKafkaError(MendableError):
    """This Kafka has no authorizer, so rights mean nothing; the message says how to change that."""


class AccessAdmin:
    """Reads and changes the principals of one Kafka.

    Args:
        bootstrap: Kafka's address; we must be a super user of it.
    """

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._client = admin(bootstrap)

    def principal_state(
        self, name: str, topics: Iterable[str] = (), *, with_quota: bool = True
    ) -> PrincipalState:
        """Return the actual state of principal *name*.

        Args:
            name: Its user name.
            topics: Topics that may exist.
            with_quota: Ask for its quota, for which Java has to start; else that is None.

        Raises:
            OpenKafkaError: This Kafka has no authorizer.
            QuotaError: Its quota cannot be asked.
            KafkaException: Kafka cannot be reached, or does not let us.
        """
        self._check_authorizer()
        bindings = self._bindings(name)
        known = _grants(bindings).get(name, frozenset())
        there = self._client.list_topics(timeout=TIMEOUT).topics
        found = frozenset(topic for topic in topics if topic in there)
        entered = name in self._users()
        limited = with_quota and (entered or known)
        limit = quotas(self._bootstrap, name).get(name) if limited else None
        return PrincipalState(name, entered, known, limit, found, revoked=name in _revoked(bindings))

    def principals(self, kind: Kind) -> list[PrincipalState]:
        """Return all principals of a *kind*, by name.

        Raises:
            OpenKafkaError: This Kafka has no authorizer.
            QuotaError: Quotas cannot be asked.
            KafkaException: Kafka cannot be reached, or does not let us.
        """
        self._check_authorizer()
        bindings, users, limits = self._bindings(), self._users(), quotas(self._bootstrap)
        grants, revoked = _grants(bindings), _revoked(bindings)
        found = [
            PrincipalState(name, name in users, grants[name], limits.get(name), revoked=name in revoked)
            for name in sorted(grants)
        ]
        return [one for one in found if one.kind is kind]

    def apply(self, name: str, steps: Sequence[Step], *, adding: bool, password: str = "") -> None:
        """Carry out *steps* for principal *name*; its password is set last, and removed first.

        Args:
            name: Its user name.
            steps: From `additions` or `removals`.
            adding: Whether they are additions.
            password: The new password, where a step sets one.

        Raises:
            QuotaError: Its quota cannot be set.
            KafkaException: Kafka refused a step, or cannot be reached.
        """
        ensure_topics(self._bootstrap, [settings(step.topic) for step in steps if step.topic])
        credential = [step for step in steps if step.part is AccessPart.PASSWORD]
        if not adding:
            self._end_invitation(name)
        if credential and not adding:
            set_password(self._client, name, None)
        if any(step.part is AccessPart.REVOCATION for step in steps):
            self._delete([_denial(kind, name) for kind in DENIED])
        if grants := [step.grant for step in steps if step.grant]:
            self._allow(name, grants) if adding else self._deny(name)
        for step in steps:
            if step.part is AccessPart.QUOTA:
                set_quota(self._bootstrap, name, step.quota)
        if credential and adding:
            set_password(self._client, name, password)

    def revoke(self, name: str, steps: Sequence[Step]) -> None:
        """Carry out the *steps* of `revocations` for principal *name*.

        Kafka looks at rights with each request, so open connections are of no more use.

        Raises:
            KafkaException: Kafka refused a step, or cannot be reached.
        """
        self._end_invitation(name)
        parts = {step.part for step in steps}
        if AccessPart.REVOCATION in parts:
            self._create([_denial(kind, name) for kind in DENIED])
        if AccessPart.PASSWORD in parts:
            set_password(self._client, name, None)

    def _end_invitation(self, name: str) -> None:
        if (invited := f"{INVITED}{name}") in self._users():
            set_password(self._client, invited, None)

    def invite(self, name: str, password: str) -> None:
        """Let *name*, who may do nothing, prove by *password* that he was invited.

        Raises:
            KafkaException: Kafka refuses, or cannot be reached.
        """
        set_password(self._client, name, password)

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
        return frozenset(self._client.describe_user_scram_credentials().result(TIMEOUT))  # type: ignore[union-attr]

    def _bindings(self, name: str | None = None) -> Sequence[AclBinding]:
        found: Sequence[AclBinding] = self._client.describe_acls(_all_of(name)).result(TIMEOUT)
        return found

    def _check_authorizer(self) -> None:
        """Check that there is an authorizer, and that it lets us ask.

        Without one, librdkafka returns an empty list of rights, and aborts the process when it is
        asked for users.

        Raises:
            OpenKafkaError: There is no authorizer.
            KafkaException: It does not let us.
        """
        if is_open(self._client):
            raise OpenKafkaError(
                f"Kafka at {self._bootstrap} has no authorizer, so rights cannot be given: "
                "`nightwire up --auth scram` asks for passwords"
            )

    def _allow(self, name: str, grants: Iterable[Grant]) -> None:
        self._create([_binding(name, grant) for grant in grants])

    def _deny(self, name: str) -> None:
        """Take every right from *name*, also those that were given by other means."""
        self._delete([_all_of(name)])

    def _create(self, bindings: Sequence[AclBinding]) -> None:
        for future in self._client.create_acls(list(bindings)).values():
            future.result(TIMEOUT)

    def _delete(self, filters: Sequence[AclBinding | AclBindingFilter]) -> None:
        exact = [_exactly(one) if isinstance(one, AclBinding) else one for one in filters]
        for future in self._client.delete_acls(exact).values():
            future.result(TIMEOUT)


DENIED = (ResourceType.TOPIC, ResourceType.GROUP)
"""Kinds of things of which a revoked principal gets none."""


def _denial(kind: ResourceType, name: str) -> AclBinding:
    literal, deny = ResourcePatternType.LITERAL, AclPermissionType.DENY
    return AclBinding(kind, "*", literal, f"User:{name}", "*", AclOperation.ALL, deny)


def _exactly(one: AclBinding) -> AclBindingFilter:
    """Return the filter of that right alone."""
    return AclBindingFilter(
        one.restype, one.name, one.resource_pattern_type, one.principal, one.host, one.operation,
        one.permission_type,
    )  # fmt: skip


def _revoked(bindings: Iterable[AclBinding]) -> frozenset[str]:
    """Return the names to which all topics are denied."""
    return frozenset(
        one.principal.removeprefix("User:")
        for one in bindings
        if one.permission_type is AclPermissionType.DENY
        and (one.restype, one.name, one.operation) == (ResourceType.TOPIC, "*", AclOperation.ALL)
    )


def _grants(bindings: Iterable[AclBinding]) -> dict[str, frozenset[Grant]]:
    """Return what *bindings* allow, by name."""
    found: dict[str, set[Grant]] = defaultdict(set)
    for binding in bindings:
        if (grant := _grant(binding)) is not None:
            found[binding.principal.removeprefix("User:")].add(grant)
    return {user: frozenset(grants) for user, grants in found.items()}


def _all_of(name: str | None) -> AclBindingFilter:
    """Return the filter of every right of principal *name*; of all principals without a name."""
    principal: Any = f"User:{name}" if name else None
    anything: Any = None
    pattern, operation, permission = ResourcePatternType.ANY, AclOperation.ANY, AclPermissionType.ANY
    return AclBindingFilter(ResourceType.ANY, anything, pattern, principal, anything, operation, permission)


def _binding(name: str, grant: Grant) -> AclBinding:
    pattern = ResourcePatternType.PREFIXED if grant.prefixed else ResourcePatternType.LITERAL
    resource, operation = RESOURCE_TYPES[grant.resource], ACL_OPERATIONS[grant.operation]
    allow = AclPermissionType.ALLOW
    return AclBinding(resource, grant.name, pattern, f"User:{name}", "*", operation, allow)


def _grant(binding: AclBinding) -> Grant | None:
    """Return the right that *binding* gives; None where it is not one of ours."""
    operation = next((one for one, acl in ACL_OPERATIONS.items() if acl is binding.operation), None)
    resource = next((one for one, acl in RESOURCE_TYPES.items() if acl is binding.restype), None)
    allowed = binding.permission_type is AclPermissionType.ALLOW
    if operation is None or resource is None or not allowed:
        return None
    prefixed = binding.resource_pattern_type is ResourcePatternType.PREFIXED
    return Grant(binding.name, operation, resource, prefixed)
