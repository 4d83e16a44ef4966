"""Tables of feeds: what they say, and what is said of those that make no sense."""

from pathlib import Path

import pytest

from nightwire.gateway.fanout.feed import Feed, Rate, feed_topics, read_rate
from nightwire.gateway.fanout.feed_config import make_feeds, parse_feeds, read_feeds
from nightwire.gateway.net.access import Access
from nightwire.gateway.net.addresses import Address

DEFAULT = Feed("voevents", Address("127.0.0.1", 8099), access=Access(("10.0.0.0/8",)), replay=60.0)
BRIGHT = '[feeds.bright]\nlisten = "127.0.0.1:8100"\ntopics = ["filter.demo.bright"]\n'


def feeds(text: str) -> tuple[Feed, ...]:
    return make_feeds(parse_feeds(text), DEFAULT)


def test_without_a_table_there_is_the_default_feed_as_the_options_say_it() -> None:
    assert feeds("") == (DEFAULT,)
    assert read_feeds(None, DEFAULT) == (DEFAULT,)


def test_a_table_says_all_of_a_feed() -> None:
    (_, lsst) = feeds(
        '[feeds.lsst]\nlisten = "tls://0.0.0.0:8101"\ntopics = ["alerts.lsst", "voevents"]\n'
        'template = "lsst"\n'
        'allow = ["192.0.2.0/24"]\ndeny = ["192.0.2.7/32"]\nxpath = ["//What"]\ndefault-xpath = ["//Who"]\n'
        'roles = ["test"]\nreplay = "1d"\nrate = "20/minute"\n'
    )
    assert lsst == Feed(
        "lsst",
        Address("0.0.0.0", 8101, tls=True),  # noqa: S104  (nobody listens)
        topics=("alerts.lsst", "voevents"),
        access=Access(("192.0.2.0/24",), ("192.0.2.7/32",)),
        template="lsst",
        xpath=("//What",),
        default_xpath=("//Who",),
        roles=("test",),
        replay=86_400.0,
        rate=Rate(20, 60),
    )


def test_what_a_table_leaves_out_is_as_the_options_say_it() -> None:
    default, bright = feeds(BRIGHT + '[feeds.voevents]\nlisten = "[::1]:7"\n')
    assert default.address == Address("::1", 7)
    assert (default.topics, default.access) == (("voevents",), DEFAULT.access)
    assert (bright.access, bright.replay, bright.roles) == (DEFAULT.access, 60.0, DEFAULT.roles)
    assert feed_topics([default, bright]) == ("voevents", "filter.demo.bright")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("feeds = 3", "write a table, [feeds.NAME]"),
        ("[feed.x]", "[feed] is no table here"),
        ("[feeds.X]", "[feeds.X]: a feed's name"),
        ("[feeds.x]", "[feeds.x] listen is missing: say listen ="),
        ('[feeds.x]\nlisten = "127.0.0.1:1"', "[feeds.x] topics is missing"),
        (BRIGHT + "port = 7", "[feeds.bright] port: no such key; there are listen"),
        (
            BRIGHT + 'template = "sky"',
            "[feeds.bright] template: there is no template 'sky'; there are elasticc",
        ),
        (BRIGHT + 'allow = ["here"]', "[feeds.bright] allow: 'here'"),
        (BRIGHT + 'allow = "10.0.0.0/8"', "is no list of texts; write allow ="),
        (BRIGHT + 'xpath = ["//["]', "[feeds.bright] xpath: //["),
        (BRIGHT + 'roles = ["tests"]', "[feeds.bright] roles: tests is no role"),
        (BRIGHT + "roles = []", "[feeds.bright] roles: nothing is no role"),
        (BRIGHT + 'replay = "60"', "[feeds.bright] replay: '60' has no unit"),
        (BRIGHT + "replay = 60", "[feeds.bright] replay: 60 is no text; write replay ="),
        (BRIGHT + 'where = "magnitude < "', "[feeds.bright] where: line 1, column 12: "),
        (
            '[feeds.voevents]\nwhere = "rolle = 1"',
            "alerts of voevents have no field rolle; did you mean role",
        ),
        (BRIGHT + 'rate = "fast"', "[feeds.bright] rate: 'fast' is no rate"),
        (BRIGHT + 'rate = "0/day"', "[feeds.bright] rate: '0/day' is no rate"),
        (BRIGHT.replace("filter.demo.bright", "filter.Me.x"), "[feeds.bright] topics: 'Me' is no name"),
        (BRIGHT.replace("filter.demo.bright", "visits"), "[feeds.bright] topics: 'visits' holds no events"),
        (BRIGHT.replace("filter.demo.bright", "alerts.sim"), "topics: alerts.sim is a whole survey"),
        ('[feeds.voevents]\ntopics = ["alerts.ztf"]', "topics: alerts.ztf is a whole survey"),
        (BRIGHT.replace("8100", "8099"), "[feeds.bright] listen: [feeds.voevents] listens at 127.0.0.1:8099"),
        (
            BRIGHT + 'template="lsst"\n[feeds.voevents]\ntopics=["filter.demo.bright"]',
            "has another one for filter",
        ),
    ],
)
def test_what_makes_no_sense_is_said_with_table_and_key(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=r".") as error:
        feeds(text)
    assert complaint in str(error.value)


@pytest.mark.parametrize("more", ['xpath = ["//What"]', 'rate = "5/second"', 'where = "snr > 20"'])
def test_a_whole_survey_can_be_a_feed_once_it_is_thinned(more: str) -> None:
    assert feeds(BRIGHT.replace("filter.demo.bright", "alerts.sim") + more)[1].topics == ("alerts.sim",)


def test_a_file_that_is_no_toml_or_not_there_is_named(tmp_path: Path) -> None:
    file = tmp_path / "feeds.toml"
    with pytest.raises(ValueError, match=r"feeds\.toml"):
        read_feeds(file, DEFAULT)
    file.write_text("[feeds")
    with pytest.raises(ValueError, match=r"feeds\.toml"):
        read_feeds(file, DEFAULT)


def test_rates() -> None:
    assert read_rate(" 3 / hour ") == Rate(3, 3600)
