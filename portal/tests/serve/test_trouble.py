"""What goes wrong while somebody looks: alerts that break the reader, rows that come in between."""

import asyncio
import json
import logging
from base64 import b64encode
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest
from starlette.requests import Request

from nightwire.core.kafka import Writer, producer
from nightwire.core.runtime import Endpoints
from nightwire.portal import follower as follower_module
from nightwire.portal import records as kept
from nightwire.portal.account import address_of
from nightwire.portal.authorization import Authorizer
from nightwire.portal.filters import FilterActions
from nightwire.portal.follower import Follower
from nightwire.portal.model import RecentAlerts, Row
from nightwire.portal.pipeline_status import PipelineStatus
from nightwire.portal.records import MissingError, Records, StampCache
from nightwire.portal.serve import Portal, api, live
from nightwire.portal.serve.live import MAX_PER_SOURCE, LiveStreams
from nightwire.portal.serve.server import behind_proxy
from nightwire.schemas.serving import KafkaAccess, RefusedError
from nightwire.schemas.wire import frame
from portal.tests.model.test_curve import received
from portal.tests.sample import SIM, Served, image_bytes, message, serving, sim_alert

ROW = Row(SIM, 0, 1, 0.0, "sim", "1", "9", 61_000.0, 1.0, 1.0, "r", 20.0, 9.0, ("science",), SIM)


def portal_of(recent: RecentAlerts, access: Any = None) -> Portal:
    """Return a portal whose Kafka is away."""
    away = Endpoints("127.0.0.1:1", "")
    records, authorizer = Records(away, StampCache(), None), Authorizer(access or KafkaAccess({}))
    actions = FilterActions(away, authorizer.access, "secret")
    return Portal(
        recent, records, authorizer, lambda: [SIM], lambda: "", "test", actions, pipeline=PipelineStatus(away)
    )


def asked(query: str = "", *, client: str = "127.0.0.1", **path: str) -> Request:
    """Return a request."""
    scope = {
        "type": "http",
        "method": "GET",
        "headers": [],
        "query_string": query.encode(),
        "client": (client, 1),
    }
    return Request(scope | {"path_params": path})


class Busy(RecentAlerts):
    """Takes in a row at the moment in which somebody asks for the newest."""

    def since(self, number: int, topics: Collection[str], most: int) -> tuple[list[Row], int]:
        """Return the newest rows behind *number*."""
        if self.count_read < 3:
            self.add([replace(ROW, offset=10 + self.count_read)])
        return super().since(number, topics, most)


def heard(portal: Portal, beats: int) -> list[str]:
    """Return what a live list hears."""
    left = [beats]

    def ending() -> bool:
        left[0] -= 1
        return left[0] < 0

    async def listen() -> list[str]:
        answer = await LiveStreams(ending).answer(portal, asked("after=0"))
        return [bytes(one).decode() async for one in answer.body_iterator]  # type: ignore[arg-type]

    return asyncio.run(listen())


def test_a_row_that_comes_in_between_is_heard_once() -> None:
    said = [one.split("data: ")[1] for one in heard(portal_of(Busy(100)), 5) if "event: rows" in one]
    assert [row["number"] for one in said for row in json.loads(one)["rows"]] == [1, 2, 3]


def test_a_list_without_rows_lets_a_proxy_notice_who_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = 30
    beats = round(seconds / live.INTERVAL)
    monkeypatch.setattr(live, "INTERVAL", 1e-4)
    comments = [one for one in heard(portal_of(RecentAlerts(100)), beats) if one == ": here\n\n"]
    assert len(comments) >= seconds / 5


def test_a_live_list_comes_again_where_kafka_is_silent_for_a_while() -> None:
    class Silent(Authorizer):
        async def visible(self, http: Request, topics: Any) -> frozenset[str]:
            if not asks:
                asks.append(1)
                return frozenset(topics)
            raise RefusedError(503, "Kafka is silent")

    asks: list[int] = []
    portal = replace(portal_of(RecentAlerts(100)), authorizer=Silent(KafkaAccess({})))
    assert not [one for one in heard(portal, 3) if "refused" in one]


def test_the_addresses_of_one_network_share_their_live_lists() -> None:
    streams, portal = LiveStreams(), portal_of(RecentAlerts(100))

    async def listen(*clients: str) -> None:
        answers = [await streams.answer(portal, asked(client=one)) for one in clients]  # all at once
        opened = [aiter(one.body_iterator) for one in answers]
        heard = [str(await anext(events)) for events in opened]
        assert ["close one" in one for one in heard] == [False] * MAX_PER_SOURCE + [True]
        assert not [event async for event in opened[-1]]
        with pytest.raises(RefusedError, match="close one"):
            await streams.answer(portal, asked(client="2001:db8::ffff"))
        assert (await streams.answer(portal, asked(client="2001:db8:0:1::1"))).status_code == 200
        assert streams.count == MAX_PER_SOURCE

    asyncio.run(listen(*(f"2001:db8::{number}" for number in range(MAX_PER_SOURCE + 1))))


def test_strangers_leave_live_lists_to_who_signs_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "MAX_OPEN", 1)
    access = KafkaAccess({"sasl.username": "ann", "sasl.password": "secret"})
    portal = replace(portal_of(RecentAlerts(100)), authorizer=Authorizer(access, public=True))
    streams, ann = LiveStreams(), (b"authorization", b"Basic " + b64encode(b"ann:secret"))

    def of(client: str, *headers: tuple[bytes, bytes]) -> Request:
        return Request({**asked(client=client).scope, "headers": headers, "session": {}})

    async def listen() -> None:
        first = aiter((await streams.answer(portal, of("192.0.2.1"))).body_iterator)  # type: ignore[attr-defined]
        await anext(first)
        with pytest.raises(RefusedError, match="too many live lists"):
            await streams.answer(portal, of("192.0.2.2"))
        assert (await streams.answer(portal, of("192.0.2.2", ann))).status_code == 200

    asyncio.run(listen())


def test_an_alert_that_cannot_be_shown_is_left_out_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    rows_of = follower_module.rows_of
    monkeypatch.setattr(
        follower_module, "rows_of", lambda some: 1 / 0 if any(a.offset == 1 for a in some) else rows_of(some)
    )
    recent = RecentAlerts(100)
    follower = Follower(Endpoints("127.0.0.1:1", ""), recent, StampCache(), 5)
    with caplog.at_level(logging.CRITICAL):
        follower._add([replace(received(sim_alert(n)), offset=n) for n in range(3)])
    assert [row.offset for row in recent.newest([SIM], 9)] == [2, 0]
    assert follower.undecodable == 1


def test_an_error_that_nobody_thought_of_is_told_and_reading_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    follower = Follower(Endpoints("127.0.0.1:1", ""), RecentAlerts(100), StampCache(), 5)
    tries: list[int] = []

    def read() -> None:
        tries.append(1)
        if len(tries) == 2:
            follower._stop.set()
        raise ZeroDivisionError("none thought of it")

    monkeypatch.setattr(follower, "_read", read)
    follower.start()
    follower._thread.join(30)
    assert (len(tries), follower.trouble) == (2, "ZeroDivisionError: none thought of it")


def test_a_chart_of_an_archived_alert_without_stamps_is_refused() -> None:
    recent = RecentAlerts(100)
    recent.add([ROW])
    portal = portal_of(recent)
    portal.records._stamps.add(ROW.record_id, {})
    with pytest.raises(RefusedError, match="has a stamp"):
        asyncio.run(api.finder(portal, asked(survey="sim", name="1")))


def test_who_waits_for_a_kafka_that_is_away_keeps_nobody_else_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kept, "TIMEOUT", 0.2)
    monkeypatch.setattr(kept, "RETRY_AFTER", 1e6)
    records = Records(Endpoints("127.0.0.1:1", ""), StampCache())
    with pytest.raises(MissingError, match="no answer"):
        records.alert(ROW.record_id)
    taken = [records._fetchers.get_nowait() for _ in range(kept.CONNECTIONS)]
    with pytest.raises(MissingError, match="a moment ago"):
        records.alert(ROW.record_id)  # asks for no connection
    with pytest.raises(MissingError, match="others ask too"):
        records.alert((SIM, 1, 1))
    assert len(taken) == kept.CONNECTIONS


def test_one_that_is_stuck_at_kafka_keeps_nobody_waiting(served: Served) -> None:
    records = served.portal.records
    stuck = [records._fetchers.get() for _ in range(kept.CONNECTIONS - 1)]
    try:
        assert records.alert((SIM, 0, 1)).offset == 1
    finally:
        for one in stuck:
            records._fetchers.put(one)


def test_who_asks_for_what_is_not_there_keeps_nobody_waiting(served: Served) -> None:
    records = served.portal.records
    end = served.portal.recent.newest([SIM], 1)[0].offset + 1
    absent = {(SIM, 0, 10**9): "offset", (SIM, 0, end): "not have it", (SIM, 7, 0): "no such partition"}
    for place, why in absent.items():
        with pytest.raises(MissingError, match=why):
            records.alert(place)
        assert records.alert((SIM, 0, 1)).offset == 1
    assert not records._unresponsive


def test_a_strip_is_drawn_once(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    first = served.portal.records.strip((SIM, 0, 2))
    monkeypatch.setattr(kept, "strip", lambda _stamps: 1 / 0)
    assert served.portal.records.strip((SIM, 0, 2)) is first


async def test_other_stamps_at_the_same_offset_are_drawn_anew() -> None:
    portal, place, stamps = portal_of(RecentAlerts(9)), (SIM, 0, 2), StampCache()
    portal = replace(portal, records=Records(Endpoints("127.0.0.1:1", ""), stamps))
    drawn = []
    for raw in (b"", image_bytes()):
        stamps.add(place, {"science": raw})
        drawn.append(await portal.strip(place))
    assert drawn[0] != drawn[1]


@pytest.mark.parametrize(
    ("named", "found"),
    [
        (["192.0.2.7"], "192.0.2.7"),
        (["1.2.3.4, 192.0.2.7"], "192.0.2.7"),
        (["1.2.3.4", "192.0.2.7"], "192.0.2.7"),
        (["192.0.2.7:49152"], "192.0.2.7"),
        (["2001:db8::7"], "2001:db8::7"),
        (["[2001:db8::7]"], "2001:db8::7"),
        (["1.2.3.4, [2001:db8::7]:49152"], "2001:db8::7"),
        (["unknown"], "unknown"),
        ([], "127.0.0.1"),
    ],
)
def test_behind_a_proxy_who_asks_is_whom_the_proxy_names(named: list[str], found: str) -> None:
    seen: list[Request] = []

    async def app(scope: dict[str, Any], _receive: Any, _send: Any) -> None:
        seen.append(Request(scope))

    scope = {**asked().scope, "scheme": "http", "path": "/", "server": ("portal", 80)}
    scope["headers"] = [(b"x-forwarded-for", one.encode()) for one in named]
    asyncio.run(behind_proxy(app)(scope, None, None))
    assert (address_of(seen[0]), seen[0].url.scheme) == (found, "https")


def test_no_survey_waits_for_the_schema_of_another(bootstrap: str) -> None:
    writer = Writer(producer(bootstrap))
    for number, value in enumerate((frame(77, b"of a schema that nobody gives"), message(sim_alert(777)))):
        for topic in ("alerts.unknown", SIM):
            writer.write(topic, value, partition=0, headers=[("survey", b"sim")] if number else [])
    writer.flush()
    with serving(bootstrap, registry="http://127.0.0.1:9") as one:
        one.until(lambda: len(one.portal.recent.named("sim", "777", [SIM])) == 1, "the alert is shown")
        one.until(lambda: one.follower.undecodable >= 2, "others are counted")
