"""The kinds of stones, and what each asks for.  Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from nightwire.core.cli import parse_duration


@dataclass(frozen=True)
class Kind:
    """A kind of stone.

    Attributes:
        needs: Its options and their types, which have to be given.
        takes: … which may be given.
        looks: What it looks into, so that other events do not fit; nothing where any fit.
        terminal: Whether events end there.
        outside: Whether they leave Kafka there, at least once.
    """

    needs: Mapping[str, type | tuple[type, ...]] = field(default_factory=dict)
    takes: Mapping[str, type | tuple[type, ...]] = field(default_factory=dict)
    looks: frozenset[str] = frozenset()
    terminal: bool = False
    outside: bool = False


Types = type | tuple[type, ...]


ALERTS, RETURNS, VOEVENTS = "alerts", "returns", "VOEvents"
WINDOWS, JOINS = "what windows say", "what joins say"
"""What goes along an edge."""
ALERTS_ALONE = frozenset({ALERTS})


def _outside(needs: Mapping[str, Types], looks: frozenset[str] = frozenset(), **takes: Types) -> Kind:
    return Kind(needs, {**PATIENCE, **takes}, looks, terminal=True, outside=True)


PATIENCE: Mapping[str, type] = {"give_up": str}
"""What every terminal outside Kafka takes: how long it tries one event."""
FUNCTIONS = ("count", "mean", "min", "max", "sum")
"""What a window can compute."""
NUMBER = (int, float)
STATE_LIMITS: Mapping[str, tuple[int, int]] = {"objects": (100_000, 1_000_000), "megabytes": (64, 256)}
"""Limits of the state of a window or a join, by default and at most; least recently used go."""
BOUNDS: Mapping[str, type] = dict.fromkeys(STATE_LIMITS, int)
MOST_ALERTS = 1000
"""Most alerts of one object in a window or a join: the newest are kept."""
AT_MOST = {"most": MOST_ALERTS} | {name: most for name, (_, most) in STATE_LIMITS.items()}
"""The greatest values of options that count something; the least is 1."""

KINDS: Mapping[str, Kind] = {
    "filter": Kind(takes={"where": str, "python": str}, looks=ALERTS_ALONE),
    "transform": Kind(takes={"drop": list, "means": list, "lite": bool, "python": str}, looks=ALERTS_ALONE),
    "router": Kind({"by": str, "values": list}, looks=ALERTS_ALONE),
    "split": Kind(),
    "window": Kind(
        {"within": str, "function": str},
        {"by": str, "value": str, "above": NUMBER, "below": NUMBER, **BOUNDS},
        looks=ALERTS_ALONE,
    ),
    "join": Kind({"within": str}, {"by": str, "most": int, **BOUNDS}, frozenset({ALERTS, RETURNS})),
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
"""Longest time for which a terminal tries one event. [s]"""
SECRETS = ("token", "password")
"""Options that name variables, and hold nothing themselves."""
DATABASE_FILE = re.compile(r"sqlite(\+\w+)?://")
"""The only databases that need no secret, and are in no network."""
PASSWORD = re.compile(r"\w+://[^/]*@")
"""Begins a URL with a name, or a password, in it."""
MOST_MAILED = 50
"""Most addresses of one mail."""
TEXTS = ("drop", "means", "to")
"""Options that may be lists, and then of texts."""


def wrong_option(kind: Kind, name: str, value: object) -> str | None:
    """Return the error in the option *name* of a stone; None where there is none."""
    wanted = {**kind.needs, **kind.takes}.get(name)
    if wanted is None:
        known = ", ".join(sorted({*kind.needs, *kind.takes, *SHARED}))
        return f"{name} is none of its keys, which are {known}"
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
        types = wanted if isinstance(wanted, tuple) else (wanted,)
        return f"{name} = {value!r} is no {' or '.join(one.__name__ for one in types)}"
    if isinstance(value, list) and name in TEXTS and not all(isinstance(one, str) for one in value):
        return f"{name} is a list of texts"
    if name == "to" and isinstance(value, list) and not 0 < len(value) <= MOST_MAILED:
        return f"to has {len(value):,} addresses: a mail goes to 1 to {MOST_MAILED}"
    if name in AT_MOST and not 0 < int(str(value)) <= AT_MOST[name]:
        return f"{name} is none of 1 to {AT_MOST[name]}"
    return _wrong_text(name, value)


def _wrong_text(name: str, value: object) -> str | None:
    told = not str(value).startswith("env:")
    elsewhere = name == "database" and not DATABASE_FILE.match(str(value))
    if told and (name in SECRETS or elsewhere or (name == "url" and PASSWORD.match(str(value)))):
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
        ValueError: It is none.
    """
    return parse_duration(text).total_seconds()
