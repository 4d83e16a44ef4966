"""Who may sign for whom, as a table of TOML says it.  Pure.

own-names = true                  # a key signs for the author whose IVORN is one of its user ids

[[signer]]                        # and this one for others, too
key = "1234 5678 …"               # fingerprint
authors = ["ivo://nasa.gsfc.*"]
events = ["ivo://nasa.gsfc.gcn/*"]

[subscribers]                     # who may subscribe; without it, whoever has a key in the keyring
keys = ["ABCD …"]
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

MAX_IVORN = 1000
"""A longer IVORN matches no pattern."""

_COMMENT = re.compile(r"\s[(<]")  # what follows a user id's name: a comment or an address
_FINGERPRINT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class PolicyError(Exception):
    """The table makes no sense; the message says where."""


@dataclass(frozen=True)
class Signer:
    """Who made a signature.

    Attributes:
        fingerprint: Of the key, lower-case hexadecimal.
        names: Its user ids.
    """

    fingerprint: str
    names: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.fingerprint} ({', '.join(self.names) or 'without a name'})"


@dataclass(frozen=True)
class Grant:
    """A key that may sign for others: patterns of the IVORNs of authors and events."""

    key: str
    authors: tuple[str, ...]
    events: tuple[str, ...] = ("*",)


@dataclass(frozen=True)
class Policy:
    """Who may sign for whom.

    Attributes:
        own_names: A key signs for the author whose IVORN is one of its user ids.
        grants: Keys that sign for others.
        subscribers: Fingerprints of keys that may subscribe; None is any that is known.
    """

    own_names: bool = True
    grants: tuple[Grant, ...] = field(default=())
    subscribers: frozenset[str] | None = None

    def may_sign(self, signer: Signer, *, author: str, ivorn: str) -> bool:
        """Say whether *signer* is believed about the event *ivorn* of *author*, both IVORNs."""
        if self.own_names and author and _same(author) in {_same(own_name(name)) for name in signer.names}:
            return True
        return any(
            grant.key == signer.fingerprint and _any(grant.authors, author) and _any(grant.events, ivorn)
            for grant in self.grants
        )

    def may_subscribe(self, signer: Signer) -> bool:
        """Say whether *signer* may subscribe."""
        return self.subscribers is None or signer.fingerprint in self.subscribers


def read_policy(text: str) -> Policy:
    """Return the policy that *text* says.

    Raises:
        PolicyError: It is no TOML, or says something else.
    """
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PolicyError(str(error)) from error
    _check_keys(table, "the table", {"own-names", "signer", "subscribers"})
    own_names = table.get("own-names", True)
    if not isinstance(own_names, bool):
        raise PolicyError("own-names is true or false")
    return Policy(own_names, tuple(map(_grant, table.get("signer", []))), _subscribers(table))


def own_name(user_id: str) -> str:
    """Return the name in *user_id*, without comment and address."""
    return _COMMENT.split(user_id)[0].strip()


def _grant(row: Mapping[str, Any]) -> Grant:
    _check_keys(row, "[[signer]]", {"key", "authors", "events"})
    if missing := {"key", "authors"} - set(row):
        raise PolicyError(f"[[signer]] has no {min(missing)}")
    events = _texts(row.get("events", ["*"]), "events")
    return Grant(_fingerprint(row["key"]), _texts(row["authors"], "authors"), events)


def _subscribers(table: Mapping[str, Any]) -> frozenset[str] | None:
    if "subscribers" not in table:
        return None
    _check_keys(table["subscribers"], "[subscribers]", {"keys"})
    return frozenset(map(_fingerprint, _texts(table["subscribers"].get("keys", []), "keys")))


def _check_keys(table: object, name: str, known: set[str]) -> None:
    if not isinstance(table, dict):
        raise PolicyError(f"{name} is no table")
    if unknown := sorted(set(table) - known):
        raise PolicyError(f"{name} has {unknown[0]!r}; it may have {', '.join(sorted(known))}")


def _texts(value: object, name: str) -> tuple[str, ...]:
    if (
        not isinstance(value, Sequence)
        or isinstance(value, str)
        or not all(isinstance(x, str) for x in value)
    ):
        raise PolicyError(f"{name} is a list of texts")
    return tuple(value)


def _fingerprint(text: object) -> str:
    found = re.sub(r"[\s:]", "", str(text)).lower().removeprefix("0x")
    if not _FINGERPRINT.fullmatch(found):
        raise PolicyError(f"{text!r} is no fingerprint: 40 or 64 hexadecimal digits")
    return found


def _any(patterns: Sequence[str], ivorn: str) -> bool:
    return any(_matches(pattern, ivorn) for pattern in patterns)


def _matches(pattern: str, ivorn: str) -> bool:
    if len(ivorn) > MAX_IVORN:  # many stars over a long text take long
        return False
    wanted = ".*".join(re.escape(part) for part in _same(pattern).split("*"))
    return re.fullmatch(wanted, _same(ivorn), re.DOTALL) is not None


def _same(ivorn: str) -> str:
    """IVOIDs are compared without regard to case."""
    return ivorn.strip().lower()
