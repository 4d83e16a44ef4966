"""What a feed carries, and which of it a subscriber gets: decided for each event.  Pure."""

from collections.abc import Callable
from enum import StrEnum

from nightwire.gateway.eventlog.event import Event
from nightwire.gateway.fanout.feed import Feed, Rate
from nightwire.gateway.xpath.filters import FilterList, read_filters

MatchesFilters = Callable[[FilterList, Event], bool]
"""Says whether an event matches filters."""


class Withheld(StrEnum):
    """Why a subscriber does not get an event."""

    TOPIC = "topic"
    ROLE = "role"
    XPATH = "xpath"
    FILTER = "filter"
    RATE = "rate"
    WHERE = "where"
    SIZE = "size"


class RateLimiter:
    """At most so many events in each period of the records' time: a replay thins as the stream did.

    Args:
        rate: How many; None: all.
    """

    def __init__(self, rate: Rate | None) -> None:
        self._rate = rate
        self._period = self._taken = 0

    def takes(self, time: int) -> bool:
        """Say whether an event of this *time* [ms since 1970] may go out; if so it counts."""
        if self._rate is None:
            return True
        period = time // (1000 * self._rate.period)
        if period > self._period:  # partitions are not in step; a late event counts as of now
            self._period, self._taken = period, 0
        if self._taken >= self._rate.events:
            return False
        self._taken += 1
        return True


class DeliveryPolicy:
    """Decide which events one subscriber of a feed gets.

    A retraction goes wherever the event that it retracts went: it passes the feed's topics, roles,
    expressions and rate, and the subscriber's own expressions.

    Args:
        feed: The feed.
        matches: Whether an event matches filters.
        always: Events that pass the roles whatever they are.
    """

    def __init__(self, feed: Feed, matches: MatchesFilters, always: Callable[[Event], bool]) -> None:
        self._feed, self._matches_filters, self._always = feed, matches, always
        self._xpath, self._default = read_filters(feed.xpath), read_filters(feed.default_xpath)
        self._rate = RateLimiter(feed.rate)

    def withholds(self, event: Event, asked: FilterList) -> Withheld | None:
        """Return why *event* does not go to a subscriber with filters *asked*; None where it goes.

        Asked once per event, in order: an event that goes out counts towards the rate.
        """
        wanted = asked if asked.filters else self._default
        carried = [one for one in event.retracts if self._feed_withholds(one) is None]
        if carried:
            matches = any(self._matches(wanted, one) for one in (*carried, event))
            return None if matches else Withheld.FILTER
        if reason := self._feed_withholds(event):
            return reason
        if not self._matches(wanted, event):
            return Withheld.FILTER
        return None if self._rate.takes(event.time) else Withheld.RATE

    def _feed_withholds(self, event: Event) -> Withheld | None:
        if event.topic not in self._feed.topics:
            return Withheld.TOPIC
        if self._feed.roles and event.role not in self._feed.roles and not self._always(event):
            return Withheld.ROLE
        if self._feed.where and event.meets is not None and self._feed.where not in event.meets:
            return Withheld.WHERE
        if self._feed.xpath and not self._xpath.active():  # too costly, and switched off
            return Withheld.XPATH
        return None if self._matches(self._xpath, event) else Withheld.XPATH

    def _matches(self, filters: FilterList, event: Event) -> bool:
        """Say whether *event* matches; one whose document is lost is taken to have matched."""
        return not event.document or self._matches_filters(filters, event)
