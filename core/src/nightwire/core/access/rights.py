"""What an owner and a community broker may do, and which topics are theirs.  Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from nightwire.schemas.topics import (
    ACCOUNTS,
    FILTERS,
    NAME,
    VISITS,
    alerts,
    answers,
    check_name,
    requests,
    returns,
    seen,
)

MB = 10**6
OWNERS_QUOTA = 20 * MB
"""What an owner may read, and write, in a second. [byte]  150 of Rubin's alerts; 20 a visit are 0.07 MB/s."""
BROKERS_QUOTA = 200 * MB
"""The same of a community broker. [byte]  Six times Rubin's stream, so that it can catch up."""


class Resource(Enum):
    """What something may be done to."""

    TOPIC = "topic"
    GROUP = "group"


class Operation(Enum):
    """What may be done; each includes to see that it is there."""

    READ = "read"
    WRITE = "write"


class Kind(Enum):
    """What a principal is."""

    OWNER = "owner"
    BROKER = "broker"


@dataclass(frozen=True, order=True)
class Grant:
    """Leave to do one thing.

    Attributes:
        name: Of a topic or a consumer group.
        deed: What may be done.
        what: Which of the two it is.
        prefixed: Whether all are meant whose names begin so.
    """

    name: str
    deed: Operation
    what: Resource = Resource.TOPIC
    prefixed: bool = False

    def __str__(self) -> str:
        return f"{self.deed.value} {self.what.value} {self.name}{'*' if self.prefixed else ''}"


@dataclass(frozen=True)
class Rights:
    """What a principal is to have.

    Attributes:
        name: Its name, and its user name in Kafka.
        kind: What it is.
        grants: What it may do; everything else is denied.
        topics: Topics that are made for it, since it may make none.
        quota: Bytes a second that it gets where it has no quota yet, each way; None to leave that alone.
    """

    name: str
    kind: Kind
    grants: frozenset[Grant]
    topics: Sequence[str]
    quota: int | None


def owner(name: str) -> Rights:
    """Return the rights of an owner of filters.

    It asks in its `requests`, reads the `answers`, what was `seen` of its filters and what passed or was cut
    off, and sees what filters are written against: alerts, visits, the filter set and the accounts.

    Raises:
        NameError_: It cannot be part of a topic.
    """
    own = [requests(check_name(name)), answers(name), seen(name)]
    grants = {
        Grant(requests(name), Operation.WRITE),
        *_read(*own, VISITS, FILTERS, ACCOUNTS),
        *_read_all(f"filter.{name}.", f"overflow.{name}.", "alerts."),
        _groups(name),
    }
    return Rights(name, Kind.OWNER, frozenset(grants), own, OWNERS_QUOTA)


def broker(name: str, surveys: Iterable[str]) -> Rights:
    """Return the rights of a community broker that takes the streams of *surveys*.

    It asks in its `requests` for filters whose output is a stream `broker.<name>.<stream>` of its own, and
    writes what it finds to its `returns`.

    Raises:
        NameError_: It cannot be part of a topic.
    """
    own = [requests(check_name(name)), answers(name), seen(name), returns(name)]
    grants = {
        Grant(requests(name), Operation.WRITE),
        Grant(returns(name), Operation.WRITE),
        *_read(*own, VISITS, *map(alerts, surveys)),
        *_read_all(f"broker.{name}."),
        _groups(name),
    }
    return Rights(name, Kind.BROKER, frozenset(grants), own, BROKERS_QUOTA)


def kind(name: str, grants: Iterable[Grant]) -> Kind | None:
    """Return what principal *name* with *grants* is; None for one that is none of ours."""
    known = set(grants)
    if not NAME.fullmatch(name):
        return None
    if Grant(returns(name), Operation.WRITE) in known:
        return Kind.BROKER
    return Kind.OWNER if Grant(requests(name), Operation.WRITE) in known else None


def _read(*names: str) -> list[Grant]:
    return [Grant(name, Operation.READ) for name in names]


def _read_all(*beginnings: str) -> list[Grant]:
    return [Grant(beginning, Operation.READ, prefixed=True) for beginning in beginnings]


def _groups(name: str) -> Grant:
    return Grant(f"{name}.", Operation.READ, Resource.GROUP, prefixed=True)
