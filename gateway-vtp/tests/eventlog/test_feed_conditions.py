"""Conditions of feeds, judged on a batch of alerts ahead of the events that are made of them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Message

from nightwire.filters.language import Condition
from nightwire.gateway.eventlog.decoder import CitedEvents, EventDecoder
from nightwire.gateway.eventlog.event_index import EventIndex
from nightwire.schemas import AlertDecoder, DecodeError, SchemaRegistry
from nightwire.schemas.records import VOEVENT
from nightwire.schemas.topics import VOEVENTS
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


def test_voevents_are_judged_as_such_whatever_a_feeds_template_is_for() -> None:
    unused: Any = None
    wanted = "role = 'test' AND ra BETWEEN 10 AND 20 AND mjd_tai > 61000"
    of_feeds = EventDecoder(lambda *_: True, unused, unused, {VOEVENTS: "lsst"}, {VOEVENTS: [wanted]})
    bare = dict.fromkeys(("author", "date", "error", "coord_system")) | {"params": [], "citations": []}
    rest = bare | {"version": "2.0", "event_time": "2026-11-25T18:00:00", "origin": "author", "received": 0}
    events = [
        {**rest, "ivorn": f"ivo://t#{ra}", "role": role, "ra": ra, "dec": 0.0, "raw": b"<x/>"}
        for ra in (15.0, 25.0, None)
        for role in ("test", "observation")
    ]
    messages = [
        Message(
            topic=VOEVENTS,
            partition=0,
            offset=at,
            value=VOEVENT.encode(one),
            headers=[("hash", b"1")],
            timestamp=(1, 5),
        )
        for at, one in enumerate(events)
    ]
    of_feeds.prepare(messages)
    found = [of_feeds.event(one) for one in messages]
    assert [one.meets for one in found] == [{wanted}, *[frozenset()] * 5]
    assert all(one.deliverable for one in found)
