"""Which channel a reader listens to: the smallest with a group that covers what it wants."""

import logging
from collections.abc import Mapping, Sequence
from functools import lru_cache

from nightwire.core.channels import ChannelFollower, ChannelMapping
from nightwire.schemas import AlertTable, survey, surveys

log = logging.getLogger("nightwire.consumers")


class ChannelChoice:
    """Follows the channels of topics, and chooses one of each.

    Args:
        bootstrap: Kafka, whose topic `channels` is followed.
        topics: Those that are read.
        where: Which of their alerts, in SQL; None for all.
        of_survey: Whose alerts they are, where the topic's name does not say it.
        interface: Name or address of the interface on which groups are joined.
    """

    def __init__(
        self,
        bootstrap: str,
        topics: Sequence[str],
        where: str | None,
        of_survey: str | None = None,
        interface: str = "",
    ) -> None:
        self._topics, self._where, self._survey = topics, where or "TRUE", of_survey
        self.interface, self._follower = interface, ChannelFollower(bootstrap)
        self._follower.__enter__()

    def chosen(self) -> Mapping[str, ChannelMapping]:
        """Return the channel of each topic that has one."""
        found = {
            topic: smallest(
                [one.mapping for one in self._follower.of(topic)],
                self._where,
                self._survey or topic.removeprefix("alerts."),
            )
            for topic in self._topics
        }
        return {topic: one for topic, one in found.items() if one is not None}

    def close(self) -> None:
        """Follow no more."""
        self._follower.__exit__()


def smallest(channels: Sequence[ChannelMapping], where: str, of_survey: str) -> ChannelMapping | None:
    """Return the first channel with a group that covers *where*, and no other that does; or None.

    Args:
        channels: Of one topic.
        where: An SQL condition.
        of_survey: Whose alerts; without a description TRUE and the same text alone cover it.
    """
    whole = reads_more_than_lite(where, of_survey)
    found = [
        one
        for one in channels
        if one.group and (one.full or not whole) and covered(where, one.condition, of_survey)
    ]
    least = [
        one
        for one in found
        if not any(
            covered(other.condition, one.condition, of_survey)
            and not covered(one.condition, other.condition, of_survey)
            for other in found
        )
    ]
    return least[0] if least else None


@lru_cache(4096)
def covered(one: str, by: str, of_survey: str) -> bool:
    """Return whether the condition *by* holds wherever *one* does, as far as can be told."""
    from nightwire.filters.language import FilterError, compile_sql
    from nightwire.filters.language.subscriptions import covers, normal_form

    if by.strip().upper() == "TRUE" or one.strip() == by.strip():
        return True
    if of_survey not in surveys():
        return False
    try:
        small, large = (normal_form(compile_sql(text, of_survey)) for text in (one, by))
    except FilterError:
        return False
    return small is not None and large is not None and covers(large, small)


@lru_cache(64)
def reads_more_than_lite(where: str, of_survey: str) -> bool:
    """Return whether a condition reads what alerts lack that come lite: stamps, history."""
    from nightwire.filters.language import compile_sql

    if of_survey not in surveys():
        return False
    described = survey(of_survey)
    about = described.description
    lacking = [
        *(path.partition(".")[0] for path in about.stamps.values()),
        *(one.path for one in about.history),
    ]
    names = compile_sql(where, described).names
    read = AlertTable.fields([name.rstrip("?") for name in names], described)
    return any(f"{path}.".startswith(f"{gone}.") for path in read for gone in lacking)
