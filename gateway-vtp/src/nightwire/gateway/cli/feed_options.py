"""The options of ``nightwire gateway serve`` that say what subscribers get."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nightwire.core.cli import Duration, with_options
from nightwire.gateway.voevent.roles import ACTED_ON, ROLES

if TYPE_CHECKING:
    from nightwire.gateway.fanout.feed import Feed
    from nightwire.gateway.net.access import Access

OPTIONS = (
    click.option(
        "--subscribers",
        metavar="HOST:PORT",
        default="127.0.0.1:8099",
        show_default=True,
        help="Where subscribers get events; port 0 takes a free one.",
    ),
    click.option(
        "--feed",
        "feed_topics",
        metavar="TOPIC",
        multiple=True,
        help="Give them the alerts of a filter topic, filter.OWNER.NAME, as VOEvents; repeatable.",
    ),
    click.option(
        "--feed-role",
        "feed_roles",
        metavar="ROLE",
        multiple=True,
        type=click.Choice(ROLES),
        default=ACTED_ON,
        show_default=True,
        help="Give them events of this role; repeatable.",
    ),
    click.option(
        "--replay",
        type=Duration(),
        default="1h",
        show_default=True,
        help="A subscriber that returns goes on after its last ack, at most so far back; 0s: never.",
    ),
    click.option(
        "--config",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="File of feeds, a table [feeds.NAME] each; [feeds.voevents] is the one of these options.",
    ),
)
FEED_OPTIONS = ("subscribers", "feed_topics", "feed_roles", "replay", "config")


feed_options = with_options(OPTIONS)
"""Gives a command the options of feeds."""


def read_feed_options(options: Mapping[str, Any], access: "Access") -> "tuple[Feed, ...]":
    """Return the feeds that *options* say, the default one first.

    Args:
        options: The values of `FEED_OPTIONS`.
        access: Who may subscribe, where a feed's table says nothing else.

    Raises:
        ValueError: One of them makes no sense; the message says which.
    """
    from nightwire.gateway.fanout.feed import DEFAULT_FEED, Feed
    from nightwire.gateway.fanout.feed_config import read_feeds, read_topics
    from nightwire.gateway.net.addresses import read_address

    topics = ["voevents", *options["feed_topics"]]
    for topic in options["feed_topics"]:
        if not topic.startswith("filter."):
            raise ValueError(
                f"--feed {topic!r}: only a filter's topic, filter.OWNER.NAME; others are said in --config"
            )
    default = Feed(
        DEFAULT_FEED,
        read_address(options["subscribers"], 8099),
        topics=read_topics(topics),
        access=access,
        roles=options["feed_roles"],
        replay=options["replay"],
    )
    return read_feeds(options["config"], default)
