"""Which events a handler acts on, and from where; the plug-ins of the gateway."""

import random
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from nightwire.gateway.cli.gateway import gateway
from nightwire.gateway.eventlog.event import Event
from nightwire.gateway.eventlog.ring_buffer import RingBuffer
from nightwire.gateway.handlers.plugins import PrintEvent, SaveEvent, file_name
from nightwire.gateway.handlers.progress import HandlerProgress, start_positions
from nightwire.gateway.handlers.settings import HandlerSpec, read_handlers
from nightwire.gateway.handlers.state import HandlerState

PARTITION, OTHER = ("voevents", 0), ("voevents", 1)


def event(offset: int, partition: int = 0) -> Event:
    return Event("voevents", partition, offset, f"ivo://a/b#{offset}", "observation", b"<VOEvent/>")


@given(st.lists(st.integers(0, 1), max_size=30), st.integers(1, 5), st.randoms(use_true_random=False))
def test_what_is_stored_is_never_past_an_event_that_is_not_done(
    partitions: list[int], jobs: int, chance: random.Random
) -> None:
    progress = HandlerProgress({PARTITION: 0, OTHER: 0})
    running: list[Event] = []
    done: set[tuple[int, int]] = set()
    for offset, partition in enumerate(partitions):
        progress.began(event(offset, partition))
        running.append(event(offset, partition))
        while len(running) >= jobs or (running and chance.random() < 0.3):
            ended = running.pop(chance.randrange(len(running)))
            progress.ended(ended)
            done.add((ended.partition, ended.offset))
        for one in running:
            assert progress.positions[one.topic_partition] <= one.offset
        began = set(zip(partitions, range(offset + 1), strict=False))
        before = {(p, o) for p, o in began if o < progress.positions["voevents", p]}
        assert before <= done
    for one in running:
        progress.ended(one)
    head = {PARTITION: 0, OTHER: 0} | {("voevents", p): o + 1 for o, p in enumerate(partitions)}
    assert progress.positions == head
    assert progress.behind(head) == 0


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        (None, {PARTITION: 100, OTHER: 7}),  # a first start: nothing of the past
        ({PARTITION: 60}, {PARTITION: 60, OTHER: 7}),  # a partition that is new: what comes next
        # what Kafka has no more is passed over
        ({PARTITION: 10, OTHER: 7}, {PARTITION: 50, OTHER: 7}),
        # past the end: of a log that is no more
        ({PARTITION: 101, OTHER: 5}, {PARTITION: 100, OTHER: 5}),
        ({("filter.a.b", 0): 3}, {PARTITION: 100, OTHER: 7}),  # a feed that was taken away
    ],
)
def test_a_handler_goes_on_where_it_stopped_and_begins_with_what_comes_next(
    stored: dict[tuple[str, int], int] | None, expected: dict[tuple[str, int], int]
) -> None:
    assert start_positions(stored, {PARTITION: 50, OTHER: 0}, {PARTITION: 100, OTHER: 7}) == expected


def test_a_cursor_before_the_ring_is_served_from_kafka_and_one_in_it_from_there() -> None:
    ring = RingBuffer({PARTITION: 10})
    for offset in (10, 11, 12):
        ring.append(event(offset))
    assert ring.take(ring.resume({PARTITION: 9}), 10) is None
    assert ring.take(ring.resume({PARTITION: 11}), 10) == [event(11), event(12)]
    assert ring.take(ring.resume({}), 10) == []


def test_positions_survive_and_those_of_another_log_or_a_broken_file_are_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "handlers.json"
    assert HandlerState(path, "one").read() == {}
    HandlerState(path, "one").write({"print-event": {PARTITION: 5, OTHER: 2}})
    assert HandlerState(path, "one").read() == {"print-event": {PARTITION: 5, OTHER: 2}}
    assert HandlerState(path, "two").read() == {}
    for broken in ('{"log": "one", "handlers": {"x": [[1]]}}', "[]", '{"log": "one"}', "half {"):
        path.write_text(broken)
        assert HandlerState(path, "one").read() == {}


def test_handlers_are_read_each_once_with_their_options() -> None:
    specs = read_handlers(
        ["slew --fast 'a b'", "slew --fast 'a b'"],
        ["archive", "save-event"],
        ["archive.base-url=http://x/?a=b"],
        ["archive", "save-event"],
    )
    assert specs == (
        HandlerSpec("slew --fast 'a b'", ("slew", "--fast", "a b")),
        HandlerSpec("archive", options={"base_url": "http://x/?a=b"}),
        HandlerSpec("save-event"),
    )


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--cmd", "no-such-program-anywhere"), "there is no program 'no-such-program-anywhere'"),
        (("--cmd", "sh 'half"), "No closing quotation"),
        (("--cmd", " "), "--cmd is empty"),
        (("--handler", "nothing"), "no such plug-in; there are print-event, save-event"),
        (("--save-event-directory", "/tmp"), "with --save-event only"),
        (("--print-event", "--handler-option", "print-event"), "NAME.KEY=VALUE"),
        (("--print-event", "--handler-option", "save-event.directory=x"), "no --handler of that name"),
        (("--handle-role", "tests"), "'tests' is not one of"),
    ],
)
def test_handlers_that_make_no_sense_are_wrong_use(options: tuple[str, ...], complaint: str) -> None:
    done = CliRunner().invoke(gateway, ["serve", "--bootstrap", "127.0.0.1:1", *options])
    assert done.exit_code == 2
    assert complaint in " ".join(done.output.split())


@dataclass(frozen=True)
class Packet:
    raw: bytes
    ivorn: str

    @property
    def root(self) -> etree._Element:
        return etree.fromstring(self.raw)


def test_events_are_saved_under_their_ivorns_byte_for_byte_and_none_is_overwritten(tmp_path: Path) -> None:
    save = SaveEvent(directory=str(tmp_path / "new" / "inbox"))
    first, second = (
        Packet(b"<VOEvent>\xe2\x98\x86</VOEvent>", "ivo://a.b/c#1"),
        Packet(b"<V/>", "ivo://a.b/c#1"),
    )
    for packet in (first, second, first):  # the last one again: its handling was lost in a crash
        save(packet)
    found = {file.name: file.read_bytes() for file in (tmp_path / "new" / "inbox").iterdir()}
    assert found == {"ivo__a.b_c1": first.raw, "ivo__a.b_c1_": second.raw}


def test_the_element_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    PrintEvent()(Packet(b"<?xml version='1.0'?><V a='1'>\n\xe2\x98\x86</V><!-- signature -->", "ivo://a/b#c"))
    assert capsys.readouterr().out == '<V a="1">\n☆</V>\n'


@pytest.mark.comet
@given(
    st.text(min_size=1, max_size=60) | st.from_regex(r"ivo://[a-z.]+/[A-Za-z_/\\-]*#[ -~]*", fullmatch=True)
)
def test_file_names_are_those_of_comet(ivorn: str) -> None:
    from comet.plugins.eventwriter import string_to_filename

    assert file_name(ivorn) == (string_to_filename(ivorn) or "_")
