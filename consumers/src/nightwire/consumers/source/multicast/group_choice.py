"""Which channel's multicast group a reader listens to, followed."""

from collections.abc import Mapping
from functools import lru_cache

from nightwire.consumers.source.multicast.covering import covering
from nightwire.core.channels import ChannelFollower, ChannelMapping
from nightwire.filters.language import compile_sql
from nightwire.schemas import AlertTable, survey, surveys
from nightwire.schemas.topics import VOEVENTS


class GroupChoice:
    """Chooses for each topic the smallest channel with a group that has all that a reader wants.

    Args:
        bootstrap: Kafka, whose topic `channels` is followed.
        surveys: Whose alerts each of the topics has that are read; any name where it is unknown.
        where: Which of them, in SQL; None for all.
        interface: Name or address of the interface on which groups are joined.
    """

    def __init__(
        self, bootstrap: str, surveys: Mapping[str, str], where: str | None, interface: str = ""
    ) -> None:
        self._surveys, self._where, self.interface = surveys, where or "TRUE", interface
        self._follower = ChannelFollower(bootstrap)
        self._follower.__enter__()

    def chosen(self) -> Mapping[str, ChannelMapping]:
        """Return the channel of each topic that has one."""
        mappings = {topic: tuple(one.mapping for one in self._follower.of(topic)) for topic in self._surveys}
        found = {
            topic: with_group(self._where, of_survey, mappings[topic])
            for topic, of_survey in self._surveys.items()
        }
        return {topic: one for topic, one in found.items() if one is not None}

    def close(self) -> None:
        """Follow no more."""
        self._follower.__exit__()


@lru_cache(8)  # it is asked ten times a second, and covering takes 0.1 ms a channel
def with_group(where: str, of_survey: str, channels: tuple[ChannelMapping, ...]) -> ChannelMapping | None:
    """Return the smallest of a topic's *channels* that covers *where* and has a group, if any.

    One that carries alerts lite is none where *where* reads what these lack.
    """
    there = [one for one in channels if one.group and (one.full or not _reads_beyond_lite(where, of_survey))]
    if of_survey in (*surveys(), VOEVENTS):
        return covering(where, of_survey, there)
    same = [one for one in there if one.condition.strip().upper() == "TRUE" or one.condition == where]
    return next(iter(same), None)


@lru_cache(64)
def _reads_beyond_lite(where: str, of_survey: str) -> bool:
    """Return whether a condition reads stamps or history."""
    if of_survey not in surveys():
        return False
    described = survey(of_survey)
    about = described.description
    stamps = [path.partition(".")[0] for path in about.stamps.values()]
    names = [name.rstrip("?") for name in compile_sql(where, described).names]
    read = AlertTable.fields(names, described)
    gone = [*stamps, *(one.path for one in about.history)]
    return any(f"{path}.".startswith(f"{one}.") for path in read for one in gone)
