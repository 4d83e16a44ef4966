"""The rights of an owner and of a community broker, and their own topics."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from nightwire.schemas import surveys
from nightwire.schemas.topics import (
    ACCOUNTS,
    CHANNELS,
    DIRECTORY,
    FILTERS,
    NAME,
    SUBSCRIPTIONS,
    VISITS,
    alerts,
    answers,
    check_name,
    comments,
    multicast,
    requests,
    returns,
    seen,
)

MB = 10**6
OWNERS_QUOTA = 20 * MB
"""Quota of an owner: 150 of Rubin's alerts a second; 20 a visit are 0.07 MB/s. [byte/s]"""
BROKERS_QUOTA = 200 * MB
"""Quota of a community broker: six times Rubin's stream, so that it can catch up. [byte/s]"""


class Resource(Enum):
    """A kind of Kafka resource."""

    TOPIC = "topic"
    GROUP = "group"


class Operation(Enum):
    """An operation on a resource; each includes describing it."""

    READ = "read"
    WRITE = "write"


class Kind(Enum):
    """The kinds of principals."""

    OWNER = "owner"
    BROKER = "broker"


@dataclass(frozen=True, order=True)
class Grant:
    """The right to one operation.

    Attributes:
        name: Name of a topic or a consumer group.
        operation: What may be done.
        resource: Whether it is a topic or a group.
        prefixed: Whether the right holds for all names that begin so.
    """

    name: str
    operation: Operation
    resource: Resource = Resource.TOPIC
    prefixed: bool = False

    def __str__(self) -> str:
        return f"{self.operation.value} {self.resource.value} {self.name}{'*' if self.prefixed else ''}"


@dataclass(frozen=True)
class Rights:
    """The rights that a principal shall have.

    Attributes:
        name: Its user name in Kafka.
        kind: Owner or broker.
        grants: What it may do; everything else is denied.
        topics: Topics that are made for it, since it may make none.
        quota: Its first quota, each way; None for no quota. [byte/s]
    """

    name: str
    kind: Kind
    grants: frozenset[Grant]
    topics: Sequence[str]
    quota: int | None


def owner(name: str) -> Rights:
    """Return the rights of an owner of filters.

    It writes to its `requests` and `comments`; it reads its `answers`, the figures in `seen`,
    everybody's comments, what passed or overflowed its filters or ends its flows, and what filters
    are written against: alerts, visits, the filter set, the accounts, the directory, subscriptions,
    the channels and their alerts; and what says on which multicast groups these are.

    Raises:
        NameError_: The name cannot be part of a topic.
    """
    own = [requests(check_name(name)), answers(name), seen(name), comments(name)]
    grants = {
        Grant(requests(name), Operation.WRITE),
        Grant(comments(name), Operation.WRITE),
        *_read(*own[:3], VISITS, FILTERS, ACCOUNTS, DIRECTORY, SUBSCRIPTIONS, CHANNELS),
        *_read_all(f"filter.{name}.", f"overflow.{name}.", f"broker.{name}.", "alerts.", "comments."),
        *_read_all(*(f"channel.{survey}." for survey in surveys())),  # not those of voevents
        *_read_all(multicast(f"filter.{name}."), multicast("alerts.")),
        _groups(name),
    }
    return Rights(name, Kind.OWNER, frozenset(grants), own, OWNERS_QUOTA)


def broker(name: str, surveys: Iterable[str]) -> Rights:
    """Return the rights of a community broker that takes the streams of *surveys*.

    It writes to its `requests` for filters, whose output is a stream `broker.<name>.<stream>` of
    its own, and to its `returns`.

    Raises:
        NameError_: The name cannot be part of a topic.
    """
    own = [requests(check_name(name)), answers(name), seen(name), returns(name)]
    surveys = [*surveys]
    streams = [alerts(survey) for survey in surveys]
    grants = {
        Grant(requests(name), Operation.WRITE),
        Grant(returns(name), Operation.WRITE),
        *_read(*own, VISITS, DIRECTORY, SUBSCRIPTIONS, CHANNELS, *streams, *map(multicast, streams)),
        *_read_all(*(f"channel.{survey}." for survey in surveys)),
        *_read_all(f"broker.{name}.", multicast(f"broker.{name}.")),
        _groups(name),
    }
    return Rights(name, Kind.BROKER, frozenset(grants), own, BROKERS_QUOTA)


def kind(name: str, grants: Iterable[Grant]) -> Kind | None:
    """Return the kind of principal *name* with *grants*; None where it is neither."""
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
