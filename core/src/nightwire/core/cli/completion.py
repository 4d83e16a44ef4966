"""Names that the shell completes: asked of the directory, else guessed from Kafka's topics."""

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from nightwire.core.runtime import Endpoints

TIMEOUT = 0.5
"""Longest wait for the directory, and for Kafka. [s]"""
MOST = 1000
"""Most names that are asked for."""

Completer = Callable[[click.Context, click.Parameter, str], list[str]]
"""What click calls with what was typed so far."""


def _completer(view: str, column: str, topic: str) -> Completer:
    """Return what completes from *column* of the directory's *view*.

    Args:
        view: A view of the directory.
        column: The names.
        topic: Pattern of the topics that tell such a name, in its group.
    """

    def complete(ctx: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
        return _names(ctx, view, column, topic, typed)

    return complete


def filters(ctx: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    """Return names of the filters of ``--owner``, else of this user."""
    from nightwire.core.kafka import properties

    owner = ctx.params.get("owner") or properties().get("sasl.username", "me")
    view = f"(SELECT site, name FROM filters WHERE owner = {_quoted(owner)})"  # noqa: S608  (quoted)
    return _names(ctx, view, "name", rf"filter\.{re.escape(owner)}\.(.+)", typed)


def entries(ctx: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    """Return names of what is listed as the KIND that was given."""
    kind = _quoted(ctx.params.get("kind") or "")
    view = f"(SELECT site, name FROM peers WHERE kind = {kind})"  # noqa: S608  (quoted)
    return _names(ctx, view, "name", NOWHERE, typed)


def kinds(_ctx: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    """Return the kinds of entries."""
    from nightwire.core.presence import KINDS

    return sorted(kind for kind in KINDS if kind.startswith(typed))


NOWHERE = r"(?!)"
"""Pattern of no topic."""
topics = _completer("streams", "topic", r"([^_].*)")
channels = _completer("channels", "topic", r"((?:alerts|filter|broker)\..+)")
filter_topics = _completer("filters", "topic", r"(filter\..+)")
owners = _completer("owners", "name", r"requests\.(.+)")
brokers = _completer("brokers", "name", r"returns\.(.+)")
surveys = _completer("channels", "survey", r"alerts\.(.+)")
groups = _completer("consumers", "name", NOWHERE)


def _names(ctx: click.Context, view: str, column: str, topic: str, typed: str) -> list[str]:
    """Return names that begin with what was *typed*; none where nobody can be asked: it is no time
    for errors.
    """
    from confluent_kafka import KafkaException

    from nightwire.schemas import MendableError

    try:
        return _asked(ctx, view, column, topic, typed)
    except (MendableError, KafkaException, OSError, LookupError, TypeError, ValueError):
        return []


def _asked(ctx: click.Context, view: str, column: str, topic: str, typed: str) -> list[str]:
    from nightwire.core.presence import SiteHttpError
    from nightwire.core.runtime import find_endpoints

    where = find_endpoints(ctx.params.get("bootstrap"))
    begins = f"substr({column}, 1, {len(typed)}) = {_quoted(typed)}"
    names = f"SELECT DISTINCT site, {column} AS name FROM {view} WHERE {begins}"  # noqa: S608
    with suppress(SiteHttpError):
        return _answer(where, f"{names} ORDER BY name LIMIT {MOST}")
    found = {match[1] for one in _topics(where.kafka) if (match := re.fullmatch(topic, one))}
    return sorted(name for name in found if name.startswith(typed))[:MOST]


def _answer(where: "Endpoints", sql: str) -> list[str]:
    """Return the names in the answer to *sql*, of the directory's own site.

    Raises:
        SiteHttpError: It refuses, or does not answer.
    """
    from nightwire.core.presence import ask_directory, home_of

    answer = ask_directory(where, "POST", "/query", json={"sql": sql}, timeout=TIMEOUT)
    home = home_of(answer)
    return [row["name"] for row in answer.json() if row["site"] == home and row["name"]]


def _topics(bootstrap: str) -> Iterable[str]:
    """Return the names of Kafka's topics; nothing is said where it does not answer."""
    from confluent_kafka.admin import AdminClient

    from nightwire.core.kafka import identity

    client = AdminClient({**identity(bootstrap), "bootstrap.servers": bootstrap, "log_level": 0})
    return list(client.list_topics(timeout=TIMEOUT).topics)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
