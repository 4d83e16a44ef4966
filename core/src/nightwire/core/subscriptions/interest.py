"""An interest, a subscription or an advertisement, as a record of `subscriptions`.  Pure."""

import getpass
import socket
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from nightwire.core.presence import wrong_name
from nightwire.schemas import MendableError, records

REFRESH = 10.0
"""Time between two refreshes. [s]"""
KINDS = ("subscription", "advertisement")
MAX_CONDITION = 64 << 10
"""Longest condition. [byte]"""
MAX_RECORD = MAX_CONDITION + (8 << 10)
"""Longest record that is decoded. [byte]"""


class InterestError(MendableError):
    """A subscription or advertisement is malformed; the message says why."""


def subscriber_name(principal: str) -> str:
    """Return our name as subscriber: our *principal* in Kafka, else user and machine."""
    if principal:
        return principal
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a container's user without a name
        user = "somebody"
    return f"{user}@{socket.gethostname()}"


def interest(
    site: str,
    subscriber: str,
    name: str,
    topic: str,
    condition: str,
    *,
    instance: str,
    kind: str = "subscription",
    channel: str | None = None,
    interval: float = REFRESH,
    expires: datetime | None = None,
) -> dict[str, Any]:
    """Return a record for `records.SUBSCRIPTION`; arguments are its fields.

    Raises:
        InterestError: An argument is malformed.
    """
    names = {"site": site, "subscriber": subscriber, "name": name, "kind": kind, "topic": topic}
    terms = {"condition": condition or "TRUE", "channel": channel, "instance": instance}
    times = {"made": datetime.now(UTC), "interval": interval, "expires": expires}
    found = names | terms | times
    check_interest(found)
    return found


def check_interest(found: Mapping[str, Any]) -> None:
    """Check the fields of the interest *found*.

    Raises:
        InterestError: One is malformed.
    """
    if why := wrong_name(found, KINDS, ("site", "subscriber", "name", "topic")):
        raise InterestError(why)
    try:
        size = len(found["condition"].encode())
    except UnicodeEncodeError as error:
        raise InterestError(f"the condition is no Unicode text: {error}") from error
    if size > MAX_CONDITION:
        raise InterestError(f"the condition has {size} bytes, the limit is {MAX_CONDITION}")
    if not 0 < found["interval"] <= 86_400:
        raise InterestError(f"interval={found['interval']:g} s: more than 0, at most a day")


def interest_key(found: Mapping[str, Any]) -> str:
    """Return the Kafka key of an interest: site, subscriber and name."""
    return f"{found['site']}/{found['subscriber']}/{found['name']}"


def interest_of(key: str, value: bytes) -> dict[str, Any]:
    """Return the interest in the record *value* under *key*.

    Raises:
        InterestError: It is malformed, too long, or belongs under another key.
        SchemaError: It is no such record.
    """
    if len(value) > MAX_RECORD:
        raise InterestError(f"a record of {len(value)} bytes, the limit is {MAX_RECORD}")
    found = records.SUBSCRIPTION.decode(value)
    if interest_key(found) != key:
        raise InterestError(f"under the key {key[:80]!r} of another")
    check_interest(found)
    return found
