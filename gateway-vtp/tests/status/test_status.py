"""What the status page shows, in a browser and in the terminal."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from click.testing import CliRunner
from prometheus_client import CollectorRegistry

from nightwire.core.cli import main
from nightwire.core.runtime import MetricsPage
from nightwire.gateway.status.model import MOST_AUTHORS, StatusModel, Traffic
from nightwire.gateway.status.page import status_page
from nightwire.gateway.status.tables import ago


@dataclass
class Session:
    """A connection from a subscriber, as the status shows it."""

    ivoid: str = "ivo://telescope.example/north"
    sent: int = 0

    def status(self) -> dict[str, Any]:
        numbers = {"sent": self.sent, "acked": 5, "naked": 1, "unacked": 1, "lag": 3}
        return {"ivoid": self.ivoid, "feed": "voevents", "filters": ["//Who"], **numbers}


Clock = Callable[[float], None]


@pytest.fixture
def board() -> tuple[StatusModel, Clock]:
    """Return a board that began at 1000 s, and a function that sets its clock."""
    now = [1000.0]
    return StatusModel("ivo://nightwire/gateway", lambda: now[0]), lambda at: now.__setitem__(0, at)


def test_a_rate_is_that_of_the_last_minute() -> None:
    traffic = Traffic()
    for number in range(3000):
        traffic.note(number / 10, "ivo://x")  # ten a second for five minutes
    assert traffic.rate(300) == pytest.approx(10, rel=0.02)
    assert traffic.rate(300 + 600) < 0.001
    assert traffic.row(320)["silent_s"] == 20.1


def test_a_subscriber_is_shown_while_it_is_there_and_remembered_when_it_left(
    board: tuple[StatusModel, Clock],
) -> None:
    shown, set_clock = board
    session = Session()
    with shown.subscriber("h:1", session):
        session.sent = 60
        set_clock(1010)
        shown.look()
        set_clock(1012)
        shown.look()
        (row,) = shown.status()["subscribers"]
        expected = {"ivoid": "ivo://telescope.example/north", "acked": 5, "lag": 3, "filters": ["//Who"]}
        assert row == row | expected | {"silent_s": 2.0, "events": 60}
        assert 0.9 < row["rate"] < 1
    assert shown.status()["subscribers"] == []
    assert shown.status()["left"][0]["address"] == "h:1"


def test_a_remote_broker_is_away_since_the_connection_ended_however_often_it_is_tried(
    board: tuple[StatusModel, Clock],
) -> None:
    shown, set_clock = board
    for at, connected in ((1001, False), (1002, True), (1060, False), (1070, False)):
        set_clock(at)
        shown.remote("broker:8099", connected=connected, reason=None if connected else "it hung up")
    (row,) = shown.status()["remotes"]
    assert (row["connected"], row["since"], row["reason"]) == (False, "1970-01-01T00:17:40Z", "it hung up")


def test_authors_are_remembered_by_address_and_not_without_end(board: tuple[StatusModel, Clock]) -> None:
    shown, _ = board
    for number in range(MOST_AUTHORS + 10):
        shown.from_author(f"192.0.2.{number}", "accepted", "ivo://a/b#1")
    shown.from_author("192.0.2.200", "invalid", None, "not well-formed XML")
    rows = shown.status()["authors"]
    assert len(rows) == MOST_AUTHORS
    assert rows[0]["outcomes"] == {"accepted": 1, "invalid": 1}
    assert rows[0]["last_reason"] == "not well-formed XML"


def test_a_feed_of_which_nothing_came_is_silent_since_the_start(board: tuple[StatusModel, Clock]) -> None:
    shown, set_clock = board
    shown.feed("filter.demo.bright")
    shown.feed("voevents")
    set_clock(1500)
    shown.published("voevents", "ivo://a/b#1")
    assert shown.silent_since() == {"filter.demo.bright": 1000, "voevents": 1500}


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, "never"),
        (-0.1, "0 s ago"),
        (119, "119 s ago"),
        (120, "2 min ago"),
        (7200, "2 h ago"),
        (4e5, "5 d ago"),
    ],
)
def test_ages_are_told_in_one_unit(seconds: float | None, words: str) -> None:
    assert ago(seconds) == words


def busy(shown: StatusModel) -> StatusModel:
    """Fill a board; a peer's words try to be markup."""
    shown.published("voevents", "ivo://a/b#<script>alert(1)</script>")
    shown.from_author("192.0.2.1", "invalid", None, "Element '<Bogus>' is not expected [red]")
    shown.remote("broker:8099", connected=True)
    for _ in range(3):
        shown.refused("author", "198.51.100.7", "denied")
    return shown


def test_the_page_has_every_table_and_no_markup_of_peers(board: tuple[StatusModel, Clock]) -> None:
    shown = busy(board[0])
    with shown.subscriber("h:1", Session('"><img src=x>')):
        page = status_page(shown.status()).decode()
    for heading in ("Feeds", "Subscribers", "Remote brokers", "Authors", "Refused connections"):
        assert heading in page
    assert "&lt;script&gt;" in page
    assert "<script" not in page
    assert "<img" not in page


@pytest.mark.slow
def test_the_verb_reads_the_page_of_a_gateway_and_says_so_where_there_is_none(
    board: tuple[StatusModel, Clock],
) -> None:
    told = busy(board[0]).status()
    pages = {"/status.json": lambda: ("application/json", json.dumps(told).encode())}
    page = MetricsPage(CollectorRegistry(), pages=pages)
    where = f"127.0.0.1:{page.start()}"
    run, words = CliRunner().invoke, ["gateway", "status", "--page"]
    try:
        assert json.loads(run(main, [*words, where, "--json"]).output) == told
        said = run(
            main, ["gateway", "status", "--page", f"http://{where}/metrics"], env={"COLUMNS": "200"}
        ).output
    finally:
        page.stop()
    assert "198.51.100.7" in said
    assert "is not expected [red]" in said
    refused = run(main, [*words, where])
    assert refused.exit_code == 1
    assert "no gateway tells its status there" in refused.output
