"""Conditions of feeds, judged on a batch of alerts ahead of the events that are made of them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from confluent_kafka import Message

from nightwire.filters.language import Condition
from nightwire.gateway.eventlog.decoder import CitedEvents, EventDecoder
from nightwire.gateway.eventlog.event import Event
from nightwire.gateway.eventlog.event_index import EventIndex
from nightwire.schemas import AlertDecoder, DecodeError, SchemaRegistry
from nightwire.schemas.records import VOEVENT
from nightwire.schemas.topics import VOEVENTS
from nightwire.schemas.wire import frame
from tests._alert_container import container

TOPIC = "alerts.lsst"
BRIGHT, FAINT = "flux > 100", "flux < 1000"


def alert(offset: int, value: bytes | None) -> Message:
    return Message(topic=TOPIC, partition=0, offset=offset, value=value, headers=[], timestamp=(1, 5))


Make = Callable[..., EventDecoder]


@pytest.fixture
def decoder(tmp_path: Path) -> Make:
    """Return what makes a decoder of a feed with conditions."""
    unused: Any = None
    cited = CitedEvents(EventIndex(tmp_path / "names"), EventIndex(tmp_path / "alerts"), unused)
    alerts = AlertDecoder(SchemaRegistry(None))
    return lambda *conditions: EventDecoder(unused, alerts, cited, {TOPIC: None}, {TOPIC: conditions})


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the sizes of the batches that are judged."""
    sizes: list[int] = []
    judge = Condition.judge

    def counted(self: Condition, values: Any, reader: Any) -> Any:
        sizes.append(len(values))
        return judge(self, values, reader)

    monkeypatch.setattr(Condition, "judge", counted)
    return sizes


def test_a_batch_is_judged_at_once_and_as_one_by_one(judged: list[int], decoder: Make) -> None:
    messages = [alert(at, container(1, flux)) for at, flux in enumerate((5.0, 200.0, 5000.0))]
    ahead, alone = decoder(BRIGHT, FAINT), decoder(BRIGHT, FAINT)
    ahead.prepare(messages)
    found = [ahead.event(one).meets for one in messages]
    assert judged == [3, 3]
    assert found == [{FAINT}, {BRIGHT, FAINT}, {BRIGHT}]
    assert [alone.event(one).meets for one in messages] == found


def test_a_record_that_holds_no_alert_spoils_no_other(judged: list[int], decoder: Make) -> None:
    messages = [
        alert(0, b"no alert"),
        alert(1, None),
        alert(2, container(1, 5000.0)),
        alert(3, container(1, 1.0)),
    ]
    of_feeds = decoder(BRIGHT)
    of_feeds.prepare(messages)
    for one in messages[:2]:
        with pytest.raises(DecodeError):
            of_feeds.event(one)
    assert [of_feeds.event(one).deliverable for one in messages[2:]] == [True, False]
    assert judged == [4]


def test_a_batch_that_was_not_prepared_is_judged_all_the_same(judged: list[int], decoder: Make) -> None:
    of_feeds = decoder(BRIGHT, None)
    of_feeds.prepare([alert(0, container(1, 5.0))])
    of_feeds.prepare([])
    event = of_feeds.event(alert(0, container(1, 200.0)))
    assert (event.deliverable, event.meets) == (True, {BRIGHT})
    assert judged == [1, 1]


def events(*parts: dict[str, Any]) -> list[Message]:
    """Return records of `voevents` that have *parts*."""
    bare = dict.fromkeys(("author", "date", "error", "coord_system", "ra")) | {"params": [], "citations": []}
    rest = bare | {"version": "2.0", "event_time": "2026-11-25T18:00:00", "origin": "author", "received": 0}
    how: dict[str, Any] = {
        "topic": VOEVENTS,
        "partition": 0,
        "headers": [("hash", b"1")],
        "timestamp": (1, 5),
    }
    return [
        Message(
            offset=at,
            value=VOEVENT.encode(rest | {"ivorn": "ivo://t#1", "dec": 0.0, "raw": b"<x/>"} | one),
            **how,
        )
        for at, one in enumerate(parts)
    ]


def test_voevents_are_judged_as_such_whatever_a_feeds_template_is_for() -> None:
    unused: Any = None
    wanted = "role = 'test' AND ra BETWEEN 10 AND 20 AND mjd_tai > 61000"
    of_feeds = EventDecoder(lambda *_: True, unused, unused, {VOEVENTS: "lsst"}, {VOEVENTS: [wanted]})
    both = ("test", "observation")
    messages = events(*({"role": role, "ra": ra} for ra in (15.0, 25.0, None) for role in both))
    of_feeds.prepare(messages)
    found = [of_feeds.event(one) for one in messages]
    assert [one.meets for one in found] == [{wanted}, *[frozenset()] * 5]
    assert all(one.deliverable for one in found)


def test_what_is_retracted_and_has_a_schema_that_is_lost_spoils_no_retraction(tmp_path: Path) -> None:
    class Lost(CitedEvents):
        def read(self, topic: str, partition: int, offset: int) -> Message:
            return alert(offset, frame(1 << 30, b"x"))

    unused: Any = None
    name = f"ivo://nightwire/{TOPIC}#lsst-1"
    cited = Lost(EventIndex(tmp_path / "names"), EventIndex(tmp_path / "alerts"), unused)
    cited.note_alert(Event(TOPIC, 0, 7, name, "observation", b"<x/>"))
    gone = httpx.MockTransport(lambda _: httpx.Response(404, json={"error_code": 40403, "message": "no"}))
    alerts = AlertDecoder(SchemaRegistry("http://127.0.0.1:9", transport=gone))
    of_feeds = EventDecoder(lambda *_: True, alerts, cited, {TOPIC: None}, {TOPIC: [BRIGHT]})
    retraction = {"role": "test", "citations": [{"ivorn": name, "cite": "retraction"}]}
    (found,) = of_feeds.event(events(retraction)[0]).retracts
    assert (found.ivorn, found.offset, found.document) == (name, 7, b"")
