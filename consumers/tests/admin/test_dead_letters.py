"""Dead letters: what they tell, and how they go back."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Message

from nightwire.consumers import AlertReader
from nightwire.consumers.admin import DeadLetter, DeadLetterStore, dead_letter_store
from nightwire.consumers.admin.dead_letters import (
    hex_dump,
    parse_dead_letter,
    replay_account,
    replay_headers,
)
from nightwire.core.accounting import discrepancies, read_accounts, send_to_dead_letters
from nightwire.core.cli import main
from nightwire.core.kafka import Writer, producer, read_to_end
from nightwire.schemas.topics import DEAD_LETTERS

HEADERS = [
    ("stage", b"filters"),
    ("source", b"alerts.sim[2]@17"),
    ("reason", b"cut off"),
    ("time", b"1795230000000"),
    ("original.visit", b"9"),
]


def message(headers: list[tuple[str, bytes]]) -> Message:
    return Message(
        topic=DEAD_LETTERS, partition=0, offset=5, key=b"k", value=b"bytes", headers=headers, timestamp=(1, 7)
    )


def test_a_letter_tells_where_from_why_and_when() -> None:
    letter = parse_dead_letter(message(HEADERS))
    assert (letter.number, letter.key, letter.value, letter.stage, letter.reason) == (
        5,
        b"k",
        b"bytes",
        "filters",
        "cut off",
    )
    assert letter.time == datetime(2026, 11, 21, 3, tzinfo=UTC)
    assert letter.origin == ("alerts.sim", 2, 17)
    assert letter.headers == [("visit", b"9")]


def test_a_letter_from_a_file_or_from_elsewhere_has_no_origin() -> None:
    assert parse_dead_letter(message([("source", b"/data/night[1].avro")])).origin is None
    assert parse_dead_letter(message([])).time == datetime(1970, 1, 1, 0, 0, 0, 7000, tzinfo=UTC)


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ([], [("topic", b"alerts.sim"), ("partition", b"2"), ("offset", b"17"), ("dead-letter", b"5")]),
        (
            [("topic", b"t"), ("partition", b"0"), ("offset", b"3"), ("dead-letter", b"1")],
            [("topic", b"t"), ("partition", b"0"), ("offset", b"3"), ("dead-letter", b"5")],
        ),  # a filter's, or one replayed before: where it first lay is known
    ],
)
def test_what_goes_back_tells_where_it_first_lay(
    own: list[tuple[str, bytes]], expected: list[tuple[str, bytes]]
) -> None:
    kept = [(f"original.{name}", content) for name, content in own]
    assert replay_headers(parse_dead_letter(message([*HEADERS[:4], *kept]))) == expected


def test_accounts_of_many_letters_leave_no_gaps() -> None:
    accounts = [replay_account(parse_dead_letter(message(HEADERS)))]
    accounts.append(
        type(accounts[0])(**{**vars(accounts[0]), "source": "dead-letters/9", "first": 9, "last": 9})
    )
    assert discrepancies(accounts) == []


def test_a_dump_has_sixteen_bytes_a_line() -> None:
    assert list(hex_dump(b"\x00ABC" * 5, most=18)) == [
        "00000000  00 41 42 43 00 41 42 43 00 41 42 43 00 41 42 43  .ABC.ABC.ABC.ABC",
        f"00000010  00 41{' ' * 43} .A",
        "… 2 bytes more",
    ]


# With Kafka


@pytest.fixture
def run(kafka: str) -> Callable[..., Result]:
    """Return a function that runs `nightwire dead-letters`."""
    return lambda *arguments: CliRunner().invoke(main, ["dead-letters", *arguments, "--bootstrap", kafka])


def buried(kafka: str, value: bytes, source: str, **how: Any) -> int:
    """Bury *value*; return its number."""
    writer = Writer(producer(kafka))
    how = {"reason": "nobody knew [its] schema"} | how
    send_to_dead_letters(writer, value, stage="filters", source=source, **how)
    writer.flush()
    return max(one.offset() or 0 for one in read_to_end(kafka, [DEAD_LETTERS]))


@pytest.mark.kafka
def test_a_letter_goes_back_once_with_its_key_and_headers(
    kafka: str, fresh_topic: Callable[..., str], encode: Callable[..., bytes], run: Callable[..., Result]
) -> None:
    topic = fresh_topic()
    headers = [("survey", b"sim"), ("visit", b"9")]
    number = buried(kafka, encode(1), f"{topic}[0]@17", key=b"obj", headers=headers)
    assert run("replay", str(number)).stdout == f"{number} -> {topic}[0]@0\n"
    with AlertReader(topic, bootstrap=kafka, follow=False, dedup="offset") as reader:
        (back,) = reader
    assert (back.alert["diaSourceId"], back.key, back.survey) == (1, b"obj", "sim")
    assert back.origin == (topic, 0, 17)
    assert back.headers["dead-letter"] == b"%d" % number
    refused = run("replay", str(number))
    assert (refused.exit_code, f"dead letter {number} was replayed before" in refused.output) == (1, True)
    assert run("replay", str(number), "--again").stdout == f"{number} -> {topic}[0]@1\n"
    with AlertReader(topic, bootstrap=kafka, follow=False, dedup="offset") as reader:
        assert len(list(reader)) == 1  # the second copy has the origin of the first
    accounted = [one for one in read_accounts(kafka) if one.stage == "dead-letters"]
    assert [one.delivered for one in accounted if one.first == number] == [1]
    assert not [line for line in discrepancies(read_accounts(kafka)) if line.startswith("dead-letters")]


@pytest.mark.kafka
def test_all_of_a_reason_near_it_go_back_but_what_cannot(
    kafka: str,
    fresh_topic: Callable[..., str],
    encode: Callable[..., bytes],
    run: Callable[..., Result],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic = fresh_topic()
    sources = (f"{topic}[0]@17", "gone.topic[0]@1", f"{topic}[0]@18")
    numbers = [buried(kafka, encode(1), source, reason=f"of {topic}") for source in sources]
    other = buried(kafka, encode(1), f"{topic}[0]@19")
    done = run("replay", str(numbers[0]), "--alike")
    assert done.stdout.splitlines() == [f"{numbers[0]} -> {topic}[0]@0", f"{numbers[2]} -> {topic}[0]@1"]
    assert (done.exit_code, f"dead letter {numbers[1]}: no topic gone.topic" in done.output) == (1, True)
    assert run("replay", str(numbers[0]), "--alike").stdout == ""
    monkeypatch.setattr(dead_letter_store, "NEAR", 2)
    far = [buried(kafka, encode(1), f"{topic}[0]@{at}", reason=f"far {topic}") for at in range(20, 24)]
    monkeypatch.setattr(dead_letter_store, "CLOCKS_DIFFER", timedelta(0))
    store, read = DeadLetterStore(kafka), list[int]()
    begun = store.get(far[0]).time
    assert store.replayed(begun) == set()  # accounts of before are not even read

    def counted(message: Message) -> DeadLetter:
        read.append(message.offset() or 0)
        return parse_dead_letter(message)

    monkeypatch.setattr(dead_letter_store, "parse_dead_letter", counted)
    done = run("replay", str(far[3]), "--alike")
    assert [line.split()[0] for line in done.stdout.splitlines()] == [str(one) for one in far[1:]]
    assert read == [far[3], far[1], *far[1:]]  # what lies further off is not even read
    assert store.replayed(begun) == {*far[1:]}
    assert run("replay", str(other), str(numbers[0]), "--alike").exit_code == 2


@pytest.mark.kafka
def test_nothing_is_sent_where_one_letter_cannot_go_back(
    kafka: str, fresh_topic: Callable[..., str], encode: Callable[..., bytes], run: Callable[..., Result]
) -> None:
    topic = fresh_topic()
    good = buried(kafka, encode(1), f"{topic}[0]@17")
    for source, words in (
        ("/data/night.avro", "came from /data/night.avro, which is no topic"),
        ("gone.topic[0]@1", "no topic gone.topic; there are"),
    ):
        bad = buried(kafka, b"garbage", source)
        refused = run("replay", str(good), str(bad))
        assert (refused.exit_code, words in refused.output) == (1, True), refused.output
    with AlertReader(topic, bootstrap=kafka, follow=False) as reader:
        assert list(reader) == []


@pytest.mark.kafka
def test_letters_are_listed_and_shown(
    kafka: str, encode: Callable[..., bytes], run: Callable[..., Result]
) -> None:
    number = buried(kafka, encode(1), "alerts.sim[0]@3", headers=[("visit", b"9")])
    rows = json.loads(run("list", "--last", "1", "--json").stdout)
    assert [(one["number"], one["source"], one["replayed"]) for one in rows] == [
        (number, "alerts.sim[0]@3", False)
    ]
    assert "[its]" in run("list").stdout
    shown = run("show", str(number)).stdout
    assert "source   alerts.sim[0]@3" in shown
    assert "header   visit = 9" in shown
    assert "can be decoded now, by schema id 100100" in shown
    assert "00000000  00 00 01 87 04" in shown
    number = buried(kafka, b"garbage", "alerts.sim[0]@4")
    assert "7 bytes; cannot be decoded: not in wire format" in run("show", str(number)).stdout
    missing = run("show", str(number + 1))
    assert (missing.exit_code, f"no dead letter {number + 1}; there are 0 to {number}" in missing.output) == (
        1,
        True,
    )
