"""Channels made and removed by hand: a record in `channels`, and a topic for the copies."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from nightwire.core.channels import MOST_OF_A_TOPIC, ChannelMapping, ChannelTable, MappingError
from nightwire.core.kafka import Writer, ensure_topics, principal, producer, read_to_end
from nightwire.core.subscriptions import subscriber_name
from nightwire.filters.language import FilterError, compile_sql
from nightwire.multicast.planning import LEAD, offsets_ahead
from nightwire.schemas import surveys
from nightwire.schemas.topics import CHANNELS, VOEVENTS, channel, named_survey, settings


class ChannelError(MappingError):
    """A channel cannot be made or removed; the message says why."""


def channels_of(bootstrap: str, topic: str | None = None) -> list[ChannelMapping]:
    """Return the channels of *topic*, or of all.

    Raises:
        KafkaException: Kafka cannot be reached.
    """
    return [one.mapping for one in channel_table(bootstrap).of(topic)]


def channel_table(bootstrap: str) -> ChannelTable:
    """Return the table of channels, with its refused records.

    Raises:
        KafkaException: Kafka cannot be reached.
    """
    table = ChannelTable()
    for message in read_to_end(bootstrap, [CHANNELS]):
        key = (message.key() or b"").decode(errors="replace")
        table.apply(key, message.value(), message.timestamp()[1], message.offset() or 0)
    return table


def make_channel(
    bootstrap: str, topic: str, name: str, condition: str, *, derived: bool = True, **carried: Any
) -> ChannelMapping:
    """Make a channel of the alerts of *topic* that meet *condition*, and return it.

    Args:
        bootstrap: ``HOST:PORT[,HOST:PORT…]``.
        topic: ``alerts.SURVEY`` or ``voevents``.
        name: The channel's; one of this name is changed.
        condition: In SQL.
        derived: Whether sources copy them.
        carried: The mapping's *group*, *full* and *priority*, where it has a group.

    Raises:
        ChannelError: The topic does not exist, the condition is no SQL, or the group is another's.
        KafkaException: Kafka cannot be reached.
        DeliveryError: Kafka did not take it.
    """
    _check(topic, condition)
    if not (since := offsets_ahead(bootstrap, topic, lead=LEAD if carried else 0.0)):
        raise ChannelError(f"no topic {topic}")
    own = [replace(settings(channel(topic, name)), partitions=len(since))] * derived
    ensure_topics(bootstrap, [settings(CHANNELS), *own])
    who = subscriber_name(principal(bootstrap))
    every = channels_of(bootstrap)
    known = {one.name: one for one in every if one.topic == topic}
    if name not in known and len(known) >= MOST_OF_A_TOPIC:
        raise ChannelError(f"{topic} has {len(known)} channels, the most that sources judge: remove one")
    _check_free(carried.get("group"), [one for one in every if (one.topic, one.name) != (topic, name)])
    before = known.get(name)
    made = ChannelMapping(topic, name, condition, who, datetime.now(UTC), derived, since=since, **carried)
    if before is not None and before.group is not None:
        if before.condition != condition:
            raise ChannelError(f"channel {made.key} goes to {before.group} as well: take it out first")
        more = {"made_by": who, "made": made.made, "since": since, "automatic": False, **carried}
        made = replace(before, derived=before.derived or derived, **more)
    _write(bootstrap, made.key, made.encoded())
    return made


def remove_channel(bootstrap: str, topic: str, name: str) -> None:
    """Remove a channel; its topic empties within a day.

    Raises:
        ChannelError: There is no channel of that name.
        KafkaException: Kafka cannot be reached.
        DeliveryError: Kafka did not take it.
    """
    table, key = channel_table(bootstrap), f"{topic}/{name}"
    known = [one.mapping.name for one in table.of(topic)]
    if name not in known and key not in table.refusals(topic):
        raise ChannelError(f"{topic} has no channel {name}; there are: {', '.join(known) or 'none'}")
    _write(bootstrap, key, None)


def _check(topic: str, condition: str) -> None:
    of_survey = named_survey(topic)
    if of_survey not in (*surveys(), VOEVENTS):
        raise ChannelError(
            f"channels are of {VOEVENTS} and alerts.SURVEY, with {', '.join(surveys())}; "
            f"not of {topic[:80]!r}"
        )
    try:
        compile_sql(condition, of_survey)
    except FilterError as error:
        raise ChannelError(f"--where: {'; '.join(error.reasons)}") from error


def _check_free(group: str | None, others: Sequence[ChannelMapping]) -> None:
    for one in others:
        if group is not None and one.group == group:
            raise ChannelError(f"--group: {group} carries channel {one.key}: each has a group of its own")


def _write(bootstrap: str, key: str, value: bytes | None) -> None:
    writer = Writer(producer(bootstrap))
    writer.write(CHANNELS, value, key=key.encode())
    writer.flush()
