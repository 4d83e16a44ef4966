"""Who may come in, how many, and what they may bring, without sockets."""

import asyncio
import logging
import math
from collections.abc import Callable

import pytest

from nightwire.gateway.cli.log_limits import RateLimitFilter
from nightwire.gateway.net.access import ADDRESS, DENIED, LOCAL, Access
from nightwire.gateway.net.limits import (
    ADDRESS_BURST,
    CROWDED,
    FULL,
    UNASKED_BURST,
    ConnectionLimiter,
    FloodError,
    Limits,
    UnaskedLimiter,
)
from nightwire.gateway.vtp.conversation import SilenceError, SlownessError, messages
from nightwire.gateway.vtp.frames import encode_frame

EVERYBODY = ("0.0.0.0/0", "::/0")


@pytest.mark.parametrize(
    ("host", "refusal"),
    [
        ("127.0.0.9", None),
        ("::1", None),
        ("::ffff:127.0.0.1", None),
        ("fe80::1%eth0", ADDRESS),
        ("10.0.0.1", ADDRESS),
        ("", ADDRESS),
    ],
)
def test_without_a_word_only_this_machine_is_let_in(host: str, refusal: str | None) -> None:
    assert Access(LOCAL).refusal(host) == refusal


def test_a_network_that_is_denied_stays_out_though_it_is_allowed() -> None:
    access = Access(("192.0.2.0/24", "2001:db8::/32"), ("192.0.2.128/25", "2001:db8:bad::/48"))
    hosts = (
        "192.0.2.1",
        "192.0.2.129",
        "::ffff:192.0.2.200",
        "2001:db8::1",
        "2001:db8:bad::1",
        "198.51.100.1",
    )
    assert [access.refusal(host) for host in hosts] == [None, DENIED, DENIED, None, DENIED, ADDRESS]


@pytest.mark.parametrize("lists", [(("300.0.0.0/8",), ()), ((), ("here",)), (("10.0.0.1/8",), ())])
def test_what_is_no_network_is_said_at_once(lists: tuple[tuple[str, ...], tuple[str, ...]]) -> None:
    with pytest.raises(ValueError, match=r"300|here|10\.0\.0\.1"):
        Access(*lists)


def test_only_so_many_come_in_from_one_address_and_in_all() -> None:
    limiter = ConnectionLimiter(Access(EVERYBODY), Limits(connections=3, per_address=2))
    for host in ("192.0.2.1", "::ffff:192.0.2.1"):
        limiter.opened(host)
    assert (limiter.refusal("192.0.2.1"), limiter.refusal("192.0.2.2")) == (CROWDED, None)
    limiter.opened("192.0.2.2")
    assert limiter.refusal("192.0.2.3") == FULL
    for host in ("192.0.2.1", "192.0.2.2"):
        limiter.closed(host)
    assert limiter.refusal("192.0.2.1") is None


def test_one_line_of_ipv6_is_one_address_however_it_is_numbered() -> None:
    limiter = ConnectionLimiter(Access(EVERYBODY), Limits(per_address=1))
    limiter.opened("2001:db8::1")
    assert limiter.refusal("2001:db8::ffff:2") == CROWDED
    assert limiter.refusal("2001:db8:0:1::1") is None


def test_who_comes_again_and_again_has_one_bucket_for_all_and_others_have_theirs() -> None:
    limiter, times = UnaskedLimiter(), ADDRESS_BURST // UNASKED_BURST
    for _ in range(times):
        limiter.bucket("192.0.2.1").take(UNASKED_BURST, 1.0)
    again = limiter.bucket("192.0.2.1")
    with pytest.raises(FloodError):
        again.take(1000, 1.0)
    limiter.bucket("192.0.2.2").take(1000, 1.0)
    again.take(1000, 2.0)


def heard(
    *chunks: bytes, timeout: float = math.inf, frame_timeout: float = math.inf
) -> tuple[list[bytes], Exception | None]:
    """Return the messages in *chunks*, after which the peer is silent, and what ended it."""

    async def listen() -> tuple[list[bytes], Exception | None]:
        reader, found = asyncio.StreamReader(), []
        for chunk in chunks:
            reader.feed_data(chunk)
        try:
            async for message in messages(
                reader, max_length=100, timeout=timeout, frame_timeout=frame_timeout
            ):
                found.append(message)
        except SilenceError as error:
            return found, error
        return found, None

    return asyncio.run(listen())


def test_whoever_begins_a_message_must_finish_it_in_time() -> None:
    said, end = heard(encode_frame(b"whole"), b"\0\0\0\x09half", frame_timeout=0.01)
    assert (said, type(end)) == ([b"whole"], SlownessError)
    said, end = heard(encode_frame(b"whole"), timeout=0.01)
    assert (said, type(end)) == ([b"whole"], SilenceError)


@pytest.fixture
def lines() -> tuple[Callable[[float, str, object], None], list[str]]:
    """Return a function that logs at a time of its own, and what is written of it."""
    now, written = [0.0], list[str]()
    sparing = RateLimitFilter(lambda: now[0], most=2, interval=60)

    def log(at: float, text: str, argument: object) -> None:
        now[0] = at
        record = logging.LogRecord("nightwire", logging.INFO, "", 0, text, (argument,), None)
        if sparing.filter(record):
            written.append(record.getMessage())

    return log, written


def test_a_flood_of_one_kind_of_line_is_counted_and_hides_no_other(
    lines: tuple[Callable[[float, str, object], None], list[str]],
) -> None:
    log, written = lines
    for number in range(1000):
        log(number / 100, "refused %s", number)
    log(30, "lost %s", "something")
    log(61, "refused %s", "again")
    assert written == [
        "refused 0",
        "refused 1",
        "lost something",
        "refused again (and 998 more like this, not written)",
    ]
