"""Comments on filters: who says what, each in a topic of his own, where Kafka knows him."""

import time
from collections import defaultdict
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from uuid import uuid4

import click
from confluent_kafka import KafkaException, Message

from nightwire.core.cli import bootstrap_option, json_option
from nightwire.core.kafka import (
    REFUSALS,
    Writer,
    admin,
    ensure_topics,
    error_code,
    principal,
    producer,
    read_to_end,
)
from nightwire.core.runtime import now_ms
from nightwire.filters.cli.options import echo_json, kafka_at, name_argument, owner_option, owner_or_default
from nightwire.filters.cli.queries import read_filters
from nightwire.schemas import DecodeError, MendableError, meant, records
from nightwire.schemas.topics import NameError_, filter_topic, settings
from nightwire.schemas.topics import comments as comments_topic

MOST = 500
"""Most comments of one author; what he writes beyond that to Kafka himself is not read."""
MAX_TEXT = 2000
"""Longest comment. [character]"""
A_MINUTE = 10
"""Most comments of one author in a minute, those that he took back among them."""
TOPICS = comments_topic("o").removesuffix("o")


class CommentError(MendableError):
    """A comment cannot be written; the message says why."""


@dataclass(frozen=True)
class Comment:
    """What somebody said.

    Attributes:
        id: Unique among those of its author.
        author: Who said it, by Kafka's word: the owner of the topic it lies in.
        time: When, by his clock.
        text: What, without characters that cannot be printed.
    """

    id: str
    author: str
    time: datetime
    text: str


def read_comments(bootstrap: str, owner: str, name: str) -> list[Comment]:
    """Return what was said about a filter, by time.

    Raises:
        CommentError: Kafka does not let who asks read them.
        KafkaException: Kafka does not answer.
    """
    there = admin(bootstrap).list_topics(timeout=10).topics
    topics = {topic for topic in there if topic.startswith(TOPICS)} | {comments_topic(owner)}
    about = _about(owner, name)
    found = [one for held in _read(bootstrap, topics)[0].values() for one in held.values()]
    return sorted((one for whose, one in found if whose == about), key=lambda one: one.time)


def write_comment(bootstrap: str, author: str, owner: str, name: str, text: str) -> str:
    """Say *text* about a filter; return the comment's id.

    Raises:
        CommentError: It is empty, too long, or one too many; there is no such filter; or Kafka does
            not let *author*.
        NameError_: No filter is called so.
        KafkaException: Kafka does not answer.
        DeliveryError: It does not take it.
    """
    filter_topic(owner, name)
    text, id_ = text.strip(), uuid4().hex[:12]
    if not 0 < len(text) <= MAX_TEXT:
        raise CommentError(f"a comment has 1 to {MAX_TEXT:,} characters, this one {len(text):,}")
    names = {what for who, what, _ in read_filters(bootstrap).versions if who == owner}
    if name not in names:
        raise CommentError(f"{owner} has no filter {name}{meant(name, names)}")
    held, recent = _read(bootstrap, [comments_topic(author)])
    if len(held[author]) >= MOST:
        raise CommentError(f"you have {MOST} comments: take some back first")
    said = {"id": id_, "about": _about(owner, name), "text": text, "time": now_ms()}
    _write(bootstrap, author, id_, records.COMMENT.encode(said), recent)
    return id_


def take_back(bootstrap: str, author: str, id_: str) -> None:
    """Delete a comment of *author*'s.

    Raises:
        CommentError: He has none of that id.
        KafkaException: Kafka does not answer.
        DeliveryError: It does not take it.
    """
    held, recent = _read(bootstrap, [comments_topic(author)])
    if id_ not in held[author]:
        raise CommentError(f"{author} has no comment {id_[:40]}")
    _write(bootstrap, author, id_, None, recent)


def _about(owner: str, name: str) -> str:
    return f"filter/{owner}/{name}"


def _read(
    bootstrap: str, topics: Collection[str]
) -> tuple[defaultdict[str, dict[str, tuple[str, Comment]]], int]:
    """Return comments by author and id, with what they are about; and the last minute's records."""
    held: defaultdict[str, dict[str, tuple[str, Comment]]] = defaultdict(dict)
    recent, since = 0, 1000 * (time.time() - 60)
    for message in _records(bootstrap, topics):
        author, id_ = (
            str(message.topic()).removeprefix(TOPICS),
            (message.key() or b"").decode(errors="replace"),
        )
        recent += message.timestamp()[1] > since
        held[author].pop(id_, None)
        if len(held[author]) < MOST and (value := message.value()) is not None:
            with suppress(DecodeError):
                said = records.COMMENT.decode(value)
                held[author][id_] = said["about"], Comment(id_, author, said["time"], _shown(said["text"]))
    return held, recent


def _records(bootstrap: str, topics: Collection[str]) -> Iterator[Message]:
    try:
        yield from read_to_end(bootstrap, sorted(topics))
    except KafkaException as error:
        if error_code(error) not in REFUSALS:
            raise
        raise _denied(principal(bootstrap) or "you", "read") from error


def _denied(who: str, what: str) -> CommentError:
    return CommentError(
        f"Kafka does not let {who} {what} comments: `nightwire user add {who}`, by the operator, "
        "gives what is missing"
    )


def _shown(text: str) -> str:
    """Return a stranger's text, of which no terminal or page is to be afraid."""
    return "".join(char if char.isprintable() or char == "\n" else " " for char in text[:MAX_TEXT])


def _write(bootstrap: str, author: str, id_: str, value: bytes | None, recent: int) -> None:
    if recent >= A_MINUTE:
        raise CommentError(f"{A_MINUTE} comments a minute are enough: wait a little")
    topic = comments_topic(author)
    try:
        ensure_topics(bootstrap, [settings(topic)])
    except KafkaException as error:
        if error_code(error) not in REFUSALS:
            raise
        raise _denied(author, "write") from error
    writer = Writer(producer(bootstrap, linger_ms=0))
    writer.write(topic, value, key=id_.encode())
    writer.flush()


@click.command()
@name_argument
@click.argument("text", required=False)
@owner_option
@click.option("--delete", metavar="ID", help="Take back a comment of yours, as `comments` names it.")
@bootstrap_option
def comment(
    name: str, text: str | None, owner: str | None, delete: str | None, bootstrap: str | None
) -> None:
    """Say TEXT about filter NAME, for everybody who may see it; or take it back.

    \b
    Example:
      nightwire filter comment bright "Half of these are variable stars."
      nightwire filter comment bright --owner ann "Add reliability > 0.5?"
      nightwire filter comment bright --delete 0f3a2b1c4d5e
    """
    if (text is None) == (delete is None):
        raise click.UsageError("say something, or name what you take back by --delete")
    where, author = kafka_at(bootstrap), owner_or_default(None)
    if delete is not None:
        take_back(where, author, delete)
        click.echo(f"comment {delete} is taken back")
        return
    whose = _checked(owner or author, name)
    click.echo(f"comment {write_comment(where, author, whose, name, str(text))} of {author}")


@click.command()
@name_argument
@owner_option
@json_option
@bootstrap_option
def comments(name: str, owner: str | None, as_json: bool, bootstrap: str | None) -> None:
    """Print what was said about filter NAME, by time.

    \b
    Example:
      nightwire filter comments bright --owner ann
    """
    whose = _checked(owner_or_default(owner), name)
    found = read_comments(kafka_at(bootstrap), whose, name)
    if as_json:
        echo_json([asdict(one) for one in found])
        return
    for one in found:
        text = one.text.replace("\n", "\n    ")
        click.echo(f"{one.time:%Y-%m-%d %H:%M} UTC  {one.author}  ({one.id})\n    {text}")
    if not found:
        click.echo(f"nobody said anything about {whose}/{name} yet")


def _checked(owner: str, name: str) -> str:
    """Return *owner*, who may have a filter *name*."""
    try:
        filter_topic(owner, name)
    except NameError_ as error:
        raise click.UsageError(f"{error}: name another's filter by NAME --owner O") from error
    return owner
