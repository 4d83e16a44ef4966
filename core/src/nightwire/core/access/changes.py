"""What has to be done so that a principal has what it is to have, or nothing any more.  Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from nightwire.core.access.rights import Grant, Kind, Rights, kind
from nightwire.core.cli.sizes import spell_size

REMOVE = "remove"


class NameTakenError(Exception):
    """A principal of that name is something else; the message says what."""


@dataclass(frozen=True)
class PrincipalState:
    """What a principal has.

    Attributes:
        name: Its user name.
        password: Whether it has one.
        grants: What it may do.
        quota: Bytes a second, each way; None where nothing limits it.
        topics: Those of its topics that there are.
    """

    name: str
    password: bool = False
    grants: frozenset[Grant] = frozenset()
    quota: int | None = None
    topics: frozenset[str] = frozenset()

    @property
    def kind(self) -> Kind | None:
        """What it is; None where it is none of ours."""
        return kind(self.name, self.grants)


class AccessPart(Enum):
    """Which part of a principal a step changes."""

    PASSWORD = "password"  # noqa: S105  (a word, no password)
    RIGHT = "right"
    QUOTA = "quota"
    TOPIC = "topic"


@dataclass(frozen=True)
class Step:
    """One thing that is done.

    Attributes:
        part: Which part it changes.
        text: What is done, for people.
        grant: The right, where it is one.
        quota: The quota to be set [byte/s]; None to take it away.
        topic: The topic to be made.
    """

    part: AccessPart
    text: str
    grant: Grant | None = field(default=None, repr=False)
    quota: int | None = field(default=None, repr=False)
    topic: str = field(default="", repr=False)


def additions(
    wanted: Rights, now: PrincipalState, *, quota: int | None, new_password: bool = False
) -> list[Step]:
    """Return what *now* lacks of *wanted*; what it has beyond stays.

    Args:
        wanted: What the principal is to have.
        now: What it has.
        quota: Bytes a second; 0 for none, None to keep what there is, and at first the usual one.
        new_password: Replace the password, too.

    Raises:
        ClashError: It is something else already.
    """
    if now.kind not in (None, wanted.kind):
        raise NameTakenError(
            f"{wanted.name} is {_a(now.kind)} already: take another name, or "
            f"`nightwire {verb(now.kind)} remove {wanted.name}` first"
        )
    return list(_additions(wanted, now, quota, new_password))


def removals(now: PrincipalState) -> list[Step]:
    """Return what is to be taken away so that the principal has nothing; its topics stay."""
    steps = [Step(AccessPart.PASSWORD, f"{REMOVE} password")] if now.password else []
    steps += [
        Step(AccessPart.RIGHT, f"{REMOVE} {grant}", grant=grant) for grant in sorted(now.grants, key=str)
    ]
    if now.quota is not None:
        steps.append(Step(AccessPart.QUOTA, f"{REMOVE} quota {spell_size(now.quota)}/s"))
    return steps


def verb(kind: Kind | None) -> str:
    """Return the verb of `nightwire` that knows principals of *kind*."""
    return "broker" if kind is Kind.BROKER else "user"


def _additions(wanted: Rights, now: PrincipalState, quota: int | None, new_password: bool) -> Iterator[Step]:
    for topic in wanted.topics:
        if topic not in now.topics:
            yield Step(AccessPart.TOPIC, f"make topic {topic}", topic=topic)
    for grant in sorted(wanted.grants - now.grants, key=str):
        yield Step(AccessPart.RIGHT, f"allow {grant}", grant=grant)
    limit = _limit(wanted, now, quota)
    if limit != now.quota:
        text = "no limit" if limit is None else f"{spell_size(limit)}/s each way"
        yield Step(AccessPart.QUOTA, f"set quota: {text}", quota=limit)
    if new_password or not now.password:
        yield Step(AccessPart.PASSWORD, "set a new password" if now.password else "set password")


def _limit(wanted: Rights, now: PrincipalState, quota: int | None) -> int | None:
    if quota is not None:
        return quota or None
    return wanted.quota if now.quota is None and not now.password else now.quota


def _a(kind: Kind | None) -> str:
    return "a broker" if kind is Kind.BROKER else "an owner"
