"""`nightwire offsets`, on a real Kafka."""

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from click.testing import CliRunner, Result

from nightwire.consumers import AlertReader
from nightwire.consumers.admin.offsets import (
    GroupActiveError,
    GroupAdmin,
    GroupPosition,
    OffsetMove,
    offset_in,
)
from nightwire.core.cli import main
from nightwire.core.kafka import Watermarks

pytestmark = pytest.mark.kafka

WAIT = 60.0


@pytest.fixture
def run(kafka: str) -> Callable[..., Result]:
    """Return a function that runs `nightwire offsets`."""
    return lambda *arguments: CliRunner().invoke(
        main, ["offsets", *arguments, "--bootstrap", kafka], catch_exceptions=False
    )


@pytest.fixture
def ten(kafka: str, fresh_topic: Callable[..., str], encode: Callable[..., bytes], write: Any) -> str:
    """Return a topic with alerts 0 to 9, a minute apart, until now."""
    topic = fresh_topic()
    now = int(datetime.now(UTC).timestamp() * 1000)
    for number in range(10):
        write(kafka, topic, [encode(number)], timestamp_ms=now - (9 - number) * 60_000)
    return topic


@pytest.fixture
def group(kafka: str, ten: str) -> str:
    """Return a group that has read four."""
    name = f"test-{os.urandom(4).hex()}"
    with AlertReader(ten, group=name, bootstrap=kafka, limit=4, timeout=WAIT) as reader:
        assert len(list(reader)) == 4
    return name


def test_show_tells_how_far_a_group_is(run: Callable[..., Result], group: str, ten: str) -> None:
    shown = json.loads(run("show", group, "--json").stdout)
    assert shown == {
        "group": group,
        "positions": [
            {
                "topic": ten,
                "partition": 0,
                "committed": 4,
                "oldest": 0,
                "end": 10,
                "behind": 6,
                "expired": 0,
            }
        ],
        "members": [],
    }
    assert ten in run("show", group).stdout


def test_a_group_that_never_was_has_no_position(run: Callable[..., Result]) -> None:
    shown = run("show", "nobody")
    assert (shown.exit_code, shown.stderr) == (0, "group nobody has kept no position\n")
    assert "name topics with --topic" in run("reset", "nobody", "--to", "end").output


@pytest.mark.parametrize(
    ("to", "then"), [("beginning", 0), ("end", 10), ("7", 7), ("99", 10), ("150s", 7), ("2100-01-01", 10)]
)
def test_reset_moves_a_group(run: Callable[..., Result], group: str, ten: str, to: str, then: int) -> None:
    planned = run("reset", group, "--to", to, "--dry-run")
    assert planned.stdout == f"{ten}[0]: 4 -> {then}\n"
    assert json.loads(run("show", group, "--json").stdout)["positions"][0]["committed"] == 4
    assert run("reset", group, "--to", to).stdout == planned.stdout
    assert json.loads(run("show", group, "--json").stdout)["positions"][0]["committed"] == then


def test_a_group_reads_on_where_it_was_moved_to(
    run: Callable[..., Result], kafka: str, group: str, ten: str
) -> None:
    assert run("reset", group, "--to", "8").exit_code == 0
    with AlertReader(ten, group=group, bootstrap=kafka, follow=False) as reader:
        assert [one.offset for one in reader] == [8, 9]


def test_a_group_can_be_placed_before_it_ever_reads(run: Callable[..., Result], ten: str) -> None:
    name = f"test-{os.urandom(4).hex()}"
    assert run("reset", name, "--to", "3", "--topic", ten).stdout == f"{ten}[0]: nowhere -> 3\n"


def test_reset_is_refused_while_somebody_reads(
    run: Callable[..., Result], kafka: str, group: str, ten: str
) -> None:
    with AlertReader(ten, group=group, member="archive-1", bootstrap=kafka, timeout=WAIT) as reader:
        next(reader)
        refused = run("reset", group, "--to", "end")
        assert refused.exit_code == 1
        assert (
            f"group {group} is being read with, so nothing was changed: stop archive-1 at" in refused.output
        )
        shown = json.loads(run("show", group, "--json").stdout)
        assert shown["members"][0]["partitions"] == [[ten, 0]]
        with GroupAdmin(kafka, group) as admin:
            # nobody there when we looked
            admin.members = list  # type: ignore[method-assign, assignment]
            with pytest.raises(GroupActiveError):
                admin.move([OffsetMove((ten, 0), 4, 10)])
    assert json.loads(run("show", group, "--json").stdout)["positions"][0]["committed"] == 5


def test_wrong_use_says_what_is_wrong(run: Callable[..., Result], group: str) -> None:
    wrong = run("reset", group, "--to", "yesterday")
    assert (wrong.exit_code, "or beginning, end, an offset" in wrong.output) == (2, True)
    assert "no topic nowhere; there are" in run("reset", group, "--to", "end", "--topic", "nowhere").output


@pytest.mark.parametrize(
    ("committed", "behind", "expired"), [(5, 15, 0), (12, 8, 0), (2, 15, 3), (20, 0, 0), (30, 0, 0)]
)
def test_behind_is_what_is_there_and_expired_what_is_gone(committed: int, behind: int, expired: int) -> None:
    position = GroupPosition(("t", 0), committed, Watermarks(5, 20))
    assert (position.behind, position.expired) == (behind, expired)


def test_an_offset_stays_within_what_is_there() -> None:
    assert [offset_in(Watermarks(5, 20), to) for to in ("beginning", "end", 7, 1, 99)] == [5, 20, 7, 5, 20]


def test_how_long_ago_is_a_target() -> None:
    from nightwire.consumers.cli.options import ResetTarget

    assert ResetTarget().convert("2h", None, None) == timedelta(hours=2)
    assert ResetTarget().convert("20261121", None, None) == 20261121
