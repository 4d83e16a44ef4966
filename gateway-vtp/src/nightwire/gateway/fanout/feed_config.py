"""The file of ``serve --config``: one table of TOML per feed."""

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from nightwire.core.cli import parse_duration
from nightwire.filters.language import FilterError, compile_sql, missing_names
from nightwire.gateway.fanout.feed import DEFAULT_FEED, Feed, read_rate
from nightwire.gateway.net.access import Access
from nightwire.gateway.net.addresses import read_address
from nightwire.gateway.voevent.roles import ROLES
from nightwire.gateway.xpath.filters import read_filters
from nightwire.schemas import surveys
from nightwire.schemas.records import VOEVENT
from nightwire.schemas.topics import NAME, VOEVENTS, named_survey
from nightwire.schemas.topics import settings as topic_settings

KINDS = ("filter", "alerts", "broker")
"""Topics of alerts that can be a feed, by the beginning of their names."""


def read_feeds(path: Path | None, default: Feed) -> tuple[Feed, ...]:
    """Return the feeds in the file *path*, the default one first; without a file that one alone.

    Args:
        path: The file; None for none.
        default: The default feed of the options: its table overrides it, key by key; the other
            feeds have its access list, roles and replay where their tables leave them out.

    Raises:
        ValueError: The file cannot be used; the message names table and key.
    """
    try:
        tables = {} if path is None else parse_feeds(path.read_text(encoding="utf-8"))
        return make_feeds(tables, default)
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise ValueError(f"--config {path}: {error}" if path else str(error)) from error


def parse_feeds(text: str) -> dict[str, Mapping[str, Any]]:
    """Return the tables ``[feeds.NAME]`` in *text*.

    Raises:
        ValueError: It is no TOML, or holds something else.
    """
    content = tomllib.loads(text)
    if unknown := sorted(set(content) - {"feeds"}):
        raise ValueError(f"[{unknown[0]}] is no table here: write [feeds.NAME]")
    found = content.get("feeds", {})
    for name, table in found.items() if isinstance(found, dict) else [("", found)]:
        if not isinstance(table, dict):
            raise ValueError(f"feeds.{name} = …: write a table, [feeds.NAME]")  # noqa: TRY004
        if not NAME.fullmatch(name):
            raise ValueError(
                f"[feeds.{name}]: a feed's name is 1 to 32 small letters, digits, '-', a letter first"
            )
    return dict(found)


def make_feeds(tables: Mapping[str, Mapping[str, Any]], default: Feed) -> tuple[Feed, ...]:
    """Return the feeds of *tables*, beginning with *default*.  See `read_feeds`.

    Raises:
        ValueError: A table makes no sense, or two feeds exclude one another.
    """
    first = _make_feed(DEFAULT_FEED, tables.get(DEFAULT_FEED, {}), default)
    bare = replace(default, topics=(), template=None, xpath=(), default_xpath=(), rate=None, where=None)
    rest = [
        _make_feed(name, {"listen": None, "topics": None, **table}, bare)
        for name, table in tables.items()
        if name != DEFAULT_FEED
    ]
    feeds = (first, *rest)
    _check_together(feeds)
    return feeds


def _make_feed(name: str, table: Mapping[str, Any], base: Feed) -> Feed:
    changes: dict[str, Any] = {"name": name}
    for key, value in table.items():
        where = f"[feeds.{name}] {key}"
        if key not in _KEYS:
            raise ValueError(f"{where}: no such key; there are {', '.join(_KEYS)}")
        if value is None:
            raise ValueError(f"{where} is missing: say {_KEYS[key][2]}")
        attribute, read, example = _KEYS[key]
        try:
            changes[attribute] = read(value)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{where}: {error}; write {example}") from error
    return _checked(_with_access(changes, base))


def _with_access(changes: dict[str, Any], base: Feed) -> Feed:
    allow, deny = changes.pop("allow", base.access.allow), changes.pop("deny", base.access.deny)
    return replace(base, **changes, access=Access(allow, deny))


def _checked(feed: Feed) -> Feed:
    whole = [topic for topic in feed.topics if topic.startswith("alerts.")]
    if whole and not (feed.xpath or feed.rate or feed.where):
        raise ValueError(
            f"[feeds.{feed.name}] topics: {whole[0]} is a whole survey, which no telescope can take: "
            'write a filter and name its topic (filter.OWNER.NAME), or give where = "magnitude < 19", '
            'or xpath = ["…"], or rate = "20/minute"'
        )
    if feed.where is not None:
        _check_where(feed, feed.where)
    return feed


def _check_where(feed: Feed, where: str) -> None:
    """Raise ValueError where a condition cannot be judged on a feed's events."""
    named = {feed.template, *map(named_survey, feed.topics)}
    try:
        for name in named.intersection(surveys()) or surveys()[:1]:
            compile_sql(where, name)
        missing = missing_names(where, VOEVENTS, [VOEVENT.schema]) if VOEVENTS in named else []
    except FilterError as error:
        missing = error.reasons
    if missing:
        raise ValueError(f"[feeds.{feed.name}] where: {'; '.join(missing)}")


def _check_together(feeds: Iterable[Feed]) -> None:
    """Raise ValueError where feeds share an address, or want one topic in two shapes."""
    addresses: dict[tuple[str, int], str] = {}
    templates: dict[str, tuple[str, str | None]] = {}
    for feed in feeds:
        other = addresses.setdefault((feed.address.host, feed.address.port), feed.name)
        if other != feed.name and feed.address.port:
            raise ValueError(f"[feeds.{feed.name}] listen: [feeds.{other}] listens at {feed.address} already")
        for topic in sorted(set(feed.topics) - {VOEVENTS}):
            one, template = templates.setdefault(topic, (feed.name, feed.template))
            if template != feed.template:
                raise ValueError(f"[feeds.{feed.name}] template: [feeds.{one}] has another one for {topic}")


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ValueError(f"{value!r} is no list of texts")
    return tuple(dict.fromkeys(value))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is no text")  # noqa: TRY004  (said with the key, as all others)
    return value


def read_topics(value: object) -> tuple[str, ...]:
    """Return the topics in the list *value*, each once.

    Raises:
        ValueError: One cannot be part of a feed.
    """
    topics = _texts(value)
    for topic in topics:
        if topic != VOEVENTS and topic.partition(".")[0] not in KINDS:
            raise ValueError(f"{topic!r} holds no events: only voevents, and what a filter lets through")
        topic_settings(topic)
    if not topics:
        raise ValueError("there is none")
    return topics


def _networks(value: object) -> tuple[str, ...]:
    networks = _texts(value)
    Access(networks)
    return networks


def _expressions(value: object) -> tuple[str, ...]:
    texts = _texts(value)
    for text, reason in read_filters(texts).refused:
        raise ValueError(f"{text}: {reason}")
    return texts


def _roles(value: object) -> tuple[str, ...]:
    roles = _texts(value)
    if unknown := [role for role in roles if role not in ROLES] or ([] if roles else ["nothing"]):
        raise ValueError(f"{unknown[0]} is no role; there are {', '.join(ROLES)}")
    return roles


def _survey(value: object) -> str:
    name = _text(value)
    if name not in surveys():
        raise ValueError(f"there is no template {name!r}; there are {', '.join(surveys())}")
    return name


def _seconds(value: object) -> float:
    return parse_duration(_text(value)).total_seconds()


_KEYS: dict[str, tuple[str, Callable[[Any], Any], str]] = {
    "listen": ("address", lambda value: read_address(_text(value), 8099), 'listen = "127.0.0.1:8100"'),
    "topics": ("topics", read_topics, 'topics = ["filter.OWNER.NAME"]'),
    "allow": ("allow", _networks, 'allow = ["192.0.2.0/24"]'),
    "deny": ("deny", _networks, 'deny = ["192.0.2.7/32"]'),
    "template": ("template", _survey, 'template = "lsst"'),
    "xpath": ("xpath", _expressions, "xpath = [\"//Param[@name='snr' and @value > 20]\"]"),
    "default-xpath": ("default_xpath", _expressions, "default-xpath = [\"/*[@role='prediction']\"]"),
    "roles": ("roles", _roles, 'roles = ["observation", "prediction"]'),
    "replay": ("replay", _seconds, 'replay = "1h"'),
    "where": ("where", _text, 'where = "magnitude < 19"'),
    "rate": ("rate", lambda value: read_rate(_text(value)), 'rate = "20/minute"'),
}
"""Each key of a feed's table: the attribute that it sets, how it is read, and an example."""
