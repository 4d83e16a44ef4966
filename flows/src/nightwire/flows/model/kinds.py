"""The kinds of stones and their keys.  Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from nightwire.core.cli import parse_duration

Types = type | tuple[type, ...]


@dataclass(frozen=True)
class Kind:
    """The specification of a kind of stone.

    Attributes:
        required: Keys that have to be given, and their types.
        optional: Keys that may be given, and their types.
        accepts: Kinds of events that it can read; empty for any.
        terminal: Whether events end there.
        outside: Whether it is a terminal outside Kafka, at least once.
    """

    required: Mapping[str, Types] = field(default_factory=dict)
    optional: Mapping[str, Types] = field(default_factory=dict)
    accepts: frozenset[str] = frozenset()
    terminal: bool = False
    outside: bool = False


ALERTS, RETURNS, VOEVENTS = "alerts", "returns", "VOEvents"
WINDOWS, JOINS = "what windows say", "what joins say"
"""Kinds of events along an edge, as errors name them."""
ALERTS_ALONE, ALERTS_AND_RETURNS = frozenset({ALERTS}), frozenset({ALERTS, RETURNS})


def _outside(required: Mapping[str, Types], accepts: frozenset[str] = frozenset(), **optional: Types) -> Kind:
    return Kind(required, {**TERMINAL_OPTIONS, **optional}, accepts, terminal=True, outside=True)


TERMINAL_OPTIONS: Mapping[str, type] = {"give_up": str}
"""Keys of every terminal outside Kafka: how long it tries one event."""
FUNCTIONS = ("count", "mean", "min", "max", "sum")
"""Aggregates of a window."""
NUMBER = (int, float)
STATE_LIMITS: Mapping[str, tuple[int, int]] = {"objects": (100_000, 1_000_000), "megabytes": (64, 256)}
"""Limits of the state of a window or a join, by default and at most; least recently used go."""
STATE_OPTIONS: Mapping[str, type] = dict.fromkeys(STATE_LIMITS, int)
MOST_ALERTS = 1000
"""Most alerts of one object in a window or a join: the newest are kept."""
MAXIMA = {"most": MOST_ALERTS} | {name: most for name, (_, most) in STATE_LIMITS.items()}
"""Greatest values of keys that count something; the least is 1."""

KINDS: Mapping[str, Kind] = {
    "filter": Kind({}, {"where": str, "python": str}, ALERTS_ALONE),
    "transform": Kind({}, {"drop": list, "means": list, "lite": bool, "python": str}, ALERTS_ALONE),
    "router": Kind({"by": str, "values": list}, accepts=ALERTS_ALONE),
    "split": Kind(),
    "window": Kind(
        {"within": str, "function": str},
        {"by": str, "value": str, "above": NUMBER, "below": NUMBER, **STATE_OPTIONS},
        ALERTS_ALONE,
    ),
    "join": Kind({"within": str}, {"by": str, "most": int, **STATE_OPTIONS}, ALERTS_AND_RETURNS),
    "topic": Kind({"topic": str}, terminal=True),
    "webhook": _outside({"url": str}, secret=str),
    "slack": _outside({"url": str, "text": str}),
    "email": _outside({"to": (str, list)}, subject=str, text=str),
    "file": _outside({"path": str}),
    "database": _outside({"database": str, "table": str}),
    "vtp": _outside({"to": str}, frozenset({ALERTS, VOEVENTS})),
    "tom": _outside(
        {"url": str, "token": str, "facility": str, "observation_type": str, "parameters": dict},
        ALERTS_ALONE,
    ),
    "bridge": Kind(
        {"kafka": str, "topic": str}, {"user": str, "password": str, "tls": bool}, terminal=True, outside=True
    ),
}

SHARED = {"kind", "from", "at"}
"""Keys of every stone."""
DURATIONS = ("within", "give_up")
MOST_TRIED = 6 * 86_400.0
"""Greatest `give_up`. [s]"""
SECRETS = ("token", "password")
"""Keys whose values name variables of the worker, and are no secrets themselves."""
DATABASE_FILE = re.compile(r"sqlite(\+\w+)?://")
"""URLs of databases that need no password, and are in no network."""
URL_WITH_LOGIN = re.compile(r"\w+://[^/]*@")
"""Beginning of a URL with a user or password in it."""
MOST_MAILED = 50
"""Most addresses of one mail."""
LIST_OPTIONS = ("drop", "means", "to")
"""Keys that may be lists, and then of texts."""


def option_error(kind: Kind, name: str, value: object) -> str | None:
    """Return the error in the key *name* of a stone; None for none."""
    wanted = {**kind.required, **kind.optional}.get(name)
    if wanted is None:
        known = ", ".join(sorted({*kind.required, *kind.optional, *SHARED}))
        return f"{name} is none of its keys, which are {known}"
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
        types = wanted if isinstance(wanted, tuple) else (wanted,)
        return f"{name} = {value!r} is no {' or '.join(one.__name__ for one in types)}"
    if isinstance(value, list) and name in LIST_OPTIONS and not all(isinstance(one, str) for one in value):
        return f"{name} is a list of texts"
    if name == "to" and isinstance(value, list) and not 0 < len(value) <= MOST_MAILED:
        return f"to has {len(value):,} addresses: a mail goes to 1 to {MOST_MAILED}"
    if name in MAXIMA and not 0 < int(str(value)) <= MAXIMA[name]:
        return f"{name} is none of 1 to {MAXIMA[name]}"
    return _text_error(name, value)


def _text_error(name: str, value: object) -> str | None:
    is_literal = not str(value).startswith("env:")
    elsewhere = name == "database" and not DATABASE_FILE.match(str(value))
    if is_literal and (name in SECRETS or elsewhere or (name == "url" and URL_WITH_LOGIN.match(str(value)))):
        return f'{name} is known to the worker alone: write {name} = "env:NIGHTWIRE_FLOW_…"'
    if name == "function" and value not in FUNCTIONS:
        return f"function = {value!r} is none of {', '.join(FUNCTIONS)}"
    if name == "url" and not str(value).startswith(("https://", "http://", "env:")):
        return f"url = {value!r} begins with none of https://, http://, env:NIGHTWIRE_FLOW_"
    if name in DURATIONS:
        try:
            if seconds(str(value)) > MOST_TRIED and name == "give_up":
                return "give_up: no queue keeps an event for more than a week: six days at most"
        except ValueError as error:
            return f"{name}: {error}"
    return None


def seconds(text: str) -> float:
    """Return the duration in *text*. [s]

    Raises:
        ValueError: *text* is no duration.
    """
    return parse_duration(text).total_seconds()
