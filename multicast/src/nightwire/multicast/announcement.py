"""The announcement of a channel in Kafka, with its signing keys where Kafka has passwords."""

import secrets
from dataclasses import replace
from typing import Any

from nightwire.core.datagrams import Channel, announce, read_channels
from nightwire.core.kafka import Writer, admin, asks_for_passwords, ensure_topics, producer
from nightwire.multicast.positions import relay_group
from nightwire.schemas import MendableError
from nightwire.schemas.topics import ACCOUNTS, multicast, settings

ROTATION = 24 * 3_600_000
"""Time between two new keys. [ms]"""
KEY_LENGTH = 32
PATIENCE = 10.0
"""Longest wait for Kafka's answer. [s]"""
MAX_KEYS = 2
"""Keys that receivers accept: the newest, and the one before it."""


def with_keys(wanted: Channel, known: Channel | None, now_ms: int) -> Channel:
    """Return *wanted* with the keys of *known*; with a new one if `ROTATION` has passed."""
    keys = known.keys if known else ()
    if known and keys and now_ms - known.rotated < ROTATION:
        return replace(wanted, keys=keys, rotated=known.rotated)
    return replace(wanted, keys=(secrets.token_bytes(KEY_LENGTH), *keys)[:MAX_KEYS], rotated=now_ms)


class GroupInUseError(MendableError):
    """A group carries another channel; the message says which, and what to do."""


def announce_channel(bootstrap: str, wanted: Channel, now_ms: int) -> Channel:
    """Announce *wanted*, and return it with its keys.

    Relays of one group share the keys: the second takes the first one's.

    Raises:
        GroupInUseError: A running relay carries another channel on that group.
        DeliveryError: Kafka did not take it.
        KafkaException: Kafka cannot be reached.
    """
    ensure_topics(bootstrap, [settings(multicast(wanted.topic)), settings(ACCOUNTS)])
    known = read_channels(bootstrap, wanted.topic).get(wanted.group)
    if known and (known.number, known.full) != (wanted.number, wanted.full):
        _check_free(bootstrap, known)
    channel = replace(wanted, rotated=known.rotated if known else now_ms)
    if asks_for_passwords(bootstrap):
        channel = with_keys(wanted, known, now_ms)
    if channel != known:
        announce(Writer(producer(bootstrap)), channel)
    return channel


def _check_free(bootstrap: str, known: Channel) -> None:
    group, client = relay_group(known.group), admin(bootstrap)
    asked: Any = client.describe_consumer_groups([group], request_timeout=PATIENCE)
    if members := asked[group].result(PATIENCE).members:
        how = f" --where {known.condition!r}" * bool(known.condition) + " --full" * known.full
        raise GroupInUseError(
            f"{known.group} carries {known.topic}{how or ' whole'}, by {len(members)} at work: a second "
            "relay is started with the same options, another channel has a group of its own"
        )
