"""What a feed carries, whom retractions acks, and up to where a subscriber has acknowledged."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightwire.gateway.eventlog.event import Event
from nightwire.gateway.fanout.ack_tracker import MAX_UNACKED, AckTracker, resume_at
from nightwire.gateway.fanout.feed import Feed, Rate
from nightwire.gateway.fanout.policy import DeliveryPolicy, RateLimiter, Withheld
from nightwire.gateway.net.addresses import Address
from nightwire.gateway.voevent.xml import parse_xml
from nightwire.gateway.xpath.filters import FilterList, read_filters

FEED = Feed("voevents", Address("127.0.0.1", 8099))
ALL = FilterList()
PARTITION = ("voevents", 0)


def event(offset: int, *, role: str = "observation", topic: str = "voevents", what: str = "a") -> Event:
    document = f'<VOEvent role="{role}"><What><Param name="{what}"/></What></VOEvent>'.encode()
    return Event(topic, 0, offset, f"ivo://a/b#{offset}", role, document, time=1000 * offset)


def retraction(*of: Event, role: str = "observation") -> Event:
    return event(99, role=role, what="retraction")._replace(retracts=of)


def matches(filters: FilterList, one: Event) -> bool:
    found = filters.filters
    return not found or any(each.xpath(parse_xml(one.document)) for each in found)


def policy(feed: Feed = FEED) -> DeliveryPolicy:
    return DeliveryPolicy(feed, matches, lambda one: one.ivorn == "ivo://a/b#7")


def test_a_feed_carries_every_role_of_its_topics_unless_told_otherwise() -> None:
    roles = ("observation", "prediction", "utility", "test", "of-another-word")
    assert [policy().withholds(event(1, role=role), ALL) for role in roles] == [None] * 5
    some = policy(replace(FEED, roles=roles[:2]))
    found = [some.withholds(event(1, role=role), ALL) for role in roles]
    assert found == [None, None, *[Withheld.ROLE] * 3]
    assert some.withholds(event(7, role="test"), ALL) is None  # a test of its own
    assert policy().withholds(event(1, topic="filter.a.b"), ALL) is Withheld.TOPIC


def test_a_feeds_own_expressions_bind_all_and_the_default_ones_those_who_ask_for_nothing() -> None:
    a, b = read_filters(["//Param[@name='a']"]), read_filters(["//Param[@name='b']"])
    bound = policy(replace(FEED, xpath=("//Param[@name='a']",)))
    assert bound.withholds(event(1, what="b"), ALL) is Withheld.XPATH
    assert bound.withholds(event(1, what="b"), b) is Withheld.XPATH
    assert bound.withholds(event(1), b) is Withheld.FILTER
    assert bound.withholds(event(1), a) is None
    usual = policy(replace(FEED, default_xpath=("//Param[@name='a']",)))
    assert usual.withholds(event(1, what="b"), ALL) is Withheld.FILTER
    assert usual.withholds(event(1, what="b"), b) is None


def test_a_retraction_goes_wherever_the_event_went_and_nowhere_else() -> None:
    feed = replace(FEED, roles=("observation",), xpath=("//Param[@name='a']",), rate=Rate(1, 60))
    one = policy(feed)
    assert one.withholds(event(1), ALL) is None
    # it has no such Param, and the rate is used up
    assert one.withholds(retraction(event(1)), ALL) is None
    assert one.withholds(retraction(event(1), role="utility"), ALL) is None
    assert one.withholds(retraction(event(2, what="b")), ALL) is Withheld.XPATH
    assert one.withholds(retraction(event(2, role="test")), ALL) is Withheld.XPATH
    alerts = policy(replace(FEED, topics=("filter.a.b",)))
    assert alerts.withholds(retraction(event(1)), ALL) is Withheld.TOPIC
    assert alerts.withholds(retraction(event(1, topic="filter.a.b")), ALL) is None


def test_a_subscriber_is_told_of_the_retraction_of_what_its_own_expressions_let_through() -> None:
    a, b = read_filters(["//Param[@name='a']"]), read_filters(["//Param[@name='b']"])
    assert policy().withholds(retraction(event(1)), a) is None
    assert policy().withholds(retraction(event(1)), b) is Withheld.FILTER
    lost = event(1)._replace(document=b"")  # it cannot be looked at any more
    assert policy().withholds(retraction(lost), b) is None


@given(st.lists(st.integers(0, 10_000_000), max_size=60), st.integers(1, 4))
def test_no_more_than_the_rate_goes_out_in_any_period(times: list[int], events: int) -> None:
    limiter = RateLimiter(Rate(events, 60))
    taken = [time for time in sorted(times) if limiter.takes(time)]
    for period in {time // 60_000 for time in times}:
        there = sum(time // 60_000 == period for time in times)
        assert sum(time // 60_000 == period for time in taken) == min(there, events)


@given(
    st.lists(st.tuples(st.sampled_from("spn"), st.integers(0, 5)), max_size=60),
    st.integers(0, 3),
)
def test_before_the_position_everything_is_answered_or_was_not_to_be_sent(
    steps: list[tuple[str, int]], begin: int
) -> None:
    acks, open_ones, offset = AckTracker({PARTITION: begin}), dict[str, int](), begin
    for step, choice in steps:
        if step == "s":
            acks.sent(event(offset))
            open_ones[f"ivo://a/b#{offset}"] = offset
            offset += 1
        elif step == "p":
            acks.withheld(event(offset))
            offset += 1
        elif open_ones:
            ivorn = sorted(open_ones)[choice % len(open_ones)]
            assert acks.answered(ivorn)
            assert open_ones.pop(ivorn) >= begin
        assert acks.acked_to == {PARTITION: min([*open_ones.values(), offset])}
    assert not acks.answered("ivo://nobody/sent#this")


@pytest.mark.slow
def test_a_peer_that_never_acknowledges_costs_bounded_memory() -> None:
    acks = AckTracker({PARTITION: 0})
    for offset in range(MAX_UNACKED + 5):
        acks.sent(event(offset))
    assert acks.acked_to == {PARTITION: 5}
    assert not acks.answered("ivo://a/b#4")
    assert acks.answered("ivo://a/b#5")


def test_who_goes_back_is_not_sent_again_what_this_session_dealt_with() -> None:
    acks = AckTracker({PARTITION: 10})
    acks.sent(event(10))
    acks.withheld(event(11))
    acks.go_back({PARTITION: 3})
    assert acks.acked_to == {PARTITION: 3}
    assert [acks.had(event(offset)) for offset in (9, 10, 11, 12)] == [False, True, True, False]


def test_where_a_subscriber_goes_on() -> None:
    other, fresh = ("voevents", 1), ("filter.a.b", 0)
    live = {PARTITION: 100, other: 50, fresh: 7}
    assert resume_at({PARTITION: 90, other: 80}, {PARTITION: 80}, live) == {
        PARTITION: 90,
        other: 50,
        fresh: 7,
    }
    assert resume_at({PARTITION: 90, other: 40}, {PARTITION: 95}, live) == {
        PARTITION: 95,
        other: 50,
        fresh: 7,
    }
