"""The changes between the wanted and the actual state of one principal.  Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from nightwire.core.access.rights import Grant, Kind, Rights, kind
from nightwire.core.cli.parameter_types import spell_size
from nightwire.schemas import MendableError

REMOVE = "remove"


class NameTakenError(MendableError):
    """A principal of that name is of another kind; the message says which."""


@dataclass(frozen=True)
class PrincipalState:
    """The actual state of a principal.

    Attributes:
        name: Its user name.
        password: Whether it has a password.
        grants: What it may do.
        quota: Its quota, each way; None for no limit. [byte/s]
        topics: Those of its topics that exist.
        revoked: Whether everything is denied to it, whatever its rights.
    """

    name: str
    password: bool = False
    grants: frozenset[Grant] = frozenset()
    quota: int | None = None
    topics: frozenset[str] = frozenset()
    revoked: bool = False

    @property
    def kind(self) -> Kind | None:
        """Owner or broker; None where it is neither."""
        return kind(self.name, self.grants)


class AccessPart(Enum):
    """Which part of a principal a step changes."""

    PASSWORD = "password"  # noqa: S105  (a word, no password)
    RIGHT = "right"
    QUOTA = "quota"
    TOPIC = "topic"
    REVOCATION = "revocation"


@dataclass(frozen=True)
class Step:
    """One change.

    Attributes:
        part: The part of a principal that changes.
        text: The change in words.
        grant: The right, where one changes.
        quota: The new quota; None for no limit. [byte/s]
        topic: The topic that is made.
    """

    part: AccessPart
    text: str
    grant: Grant | None = field(default=None, repr=False)
    quota: int | None = field(default=None, repr=False)
    topic: str = field(default="", repr=False)


def additions(
    wanted: Rights,
    now: PrincipalState,
    *,
    quota: int | None,
    new_password: bool = False,
    password: bool = True,
) -> list[Step]:
    """Return the steps that give *now* what it lacks of *wanted*; what it has beyond stays.

    Args:
        wanted: The rights that the principal shall have.
        now: Its actual state.
        quota: Its quota; 0 for no limit, None to keep it, or to set the first one. [byte/s]
        new_password: Replace the password too.
        password: Whether it shall have one.

    Raises:
        NameTakenError: It is of another kind already.
    """
    if now.kind not in (None, wanted.kind):
        raise NameTakenError(
            f"{wanted.name} is {_a(now.kind)} already: take another name, or "
            f"`nightwire {verb(now.kind)} remove {wanted.name}` first"
        )
    steps = list(_additions(wanted, now, quota))
    if password and (new_password or not now.password):
        steps.append(Step(AccessPart.PASSWORD, "set a new password" if now.password else "set password"))
    return steps


def removals(now: PrincipalState) -> list[Step]:
    """Return the steps that take password, rights and quota from a principal; its topics stay."""
    steps = [Step(AccessPart.PASSWORD, f"{REMOVE} password")] if now.password else []
    steps += [
        Step(AccessPart.RIGHT, f"{REMOVE} {grant}", grant=grant) for grant in sorted(now.grants, key=str)
    ]
    if now.quota is not None:
        steps.append(Step(AccessPart.QUOTA, f"{REMOVE} quota {spell_size(now.quota)}/s"))
    return steps


def revocations(now: PrincipalState) -> list[Step]:
    """Return the steps that lock a principal out; its rights stay for when it comes back."""
    steps = [] if now.revoked else [Step(AccessPart.REVOCATION, "deny everything, whatever its rights")]
    return steps + ([Step(AccessPart.PASSWORD, f"{REMOVE} password")] if now.password else [])


def verb(kind: Kind | None) -> str:
    """Return the verb of `nightwire` for principals of *kind*."""
    return "broker" if kind is Kind.BROKER else "user"


def _additions(wanted: Rights, now: PrincipalState, quota: int | None) -> Iterator[Step]:
    if now.revoked:
        yield Step(AccessPart.REVOCATION, "let in again")
    for topic in wanted.topics:
        if topic not in now.topics:
            yield Step(AccessPart.TOPIC, f"make topic {topic}", topic=topic)
    for grant in sorted(wanted.grants - now.grants, key=str):
        yield Step(AccessPart.RIGHT, f"allow {grant}", grant=grant)
    limit = _limit(wanted, now, quota)
    if limit != now.quota:
        text = "no limit" if limit is None else f"{spell_size(limit)}/s each way"
        yield Step(AccessPart.QUOTA, f"set quota: {text}", quota=limit)


def _limit(wanted: Rights, now: PrincipalState, quota: int | None) -> int | None:
    if quota is not None:
        return quota or None
    return wanted.quota if now.quota is None and not now.password else now.quota


def _a(kind: Kind | None) -> str:
    return "a broker" if kind is Kind.BROKER else "an owner"
