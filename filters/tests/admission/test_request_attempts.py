"""What an owner may ask, each by a real Kafka: all is answered, and nobody waits for another.

The requests (attempts.toml) are written as by somebody who does not use our client.
"""

import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from nightwire.core.accounting.dead_letters import OVERHEAD
from nightwire.core.kafka import MAX_MESSAGE, Writer, ensure_topics, headers_of, producer, read_to_end
from nightwire.core.runtime import Stop, now_ms
from nightwire.filters.admission.answers import MAX_NAME
from nightwire.filters.admission.catalog import Catalog
from nightwire.filters.admission.requests import FAILED, RequestConsumer
from nightwire.filters.admission.service import SubmissionService
from nightwire.filters.admission.trial import AdmissionPolicy
from nightwire.filters.cli.queries import read_filters
from nightwire.filters.decision.backfill_jobs import BackfillJobs
from nightwire.filters.language import FilterError
from nightwire.schemas import Codec, records, topics, wire

pytestmark = pytest.mark.kafka

TABLE = tomllib.loads((Path(__file__).parent / "attempts.toml").read_text(encoding="utf-8"))
PROOFS = os.environ.get("NIGHTWIRE_PROOFS") == "1"
ATTEMPTS = {one["name"]: one for one in TABLE["attempt"] if PROOFS or "proof" not in one}
KEEP = "\ndef keep(alert):\n    return alert.flux > 97\n"
ALERTS = 100
LONGEST_S = 120.0
"""Longest wait for an answer, as the page promises. [s]"""

SUBMIT = {
    "action": "submit", "owner": "me", "survey": "sim", "language": "python", "source": KEEP,
    "entry": "keep",
}  # fmt: skip


def encoded(request: Mapping[str, Any]) -> bytes:
    """Return a request as it lies in Kafka; its time may be any number."""
    schema = records.REQUEST.schema
    fields = [one | {"type": "long"} if one["name"] == "time" else one for one in schema["fields"]]
    return wire.frame(records.REQUEST.schema_id, Codec({**schema, "fields": fields}).encode(request))


def fields_of(name: str) -> dict[str, Any]:
    """Return the fields of an attempt's request."""
    found: dict[str, Any] = eval(ATTEMPTS[name]["fields"], {"KEEP": KEEP})  # noqa: S307 - ours
    return found


class Engine:
    """An engine's side of requests, and the answers that it gave.

    Attributes:
        outcomes: What became of each request.
    """

    def __init__(self, bootstrap: str, folder: Path) -> None:
        self.bootstrap, self.stop, self.outcomes = bootstrap, Stop(), list[str]()
        policy = AdmissionPolicy(fewest=50, alerts=80, memory_mb=256, cpu_ms=20.0)
        service = SubmissionService(
            bootstrap, "http://127.0.0.1:9", folder, Catalog(bootstrap), policy, "weak",
            backfills=BackfillJobs(folder),
        )  # fmt: skip
        self.thread = RequestConsumer(bootstrap, service, self.stop, self.outcomes.append).start()

    def ask(self, requests: Mapping[str, Mapping[str, Any]]) -> None:
        """Write requests, by their ids."""
        writer = Writer(producer(self.bootstrap))
        for number, (id_, fields) in enumerate(requests.items()):
            request = {"id": id_, "name": f"a{number}", "time": now_ms(), **SUBMIT, **fields}
            writer.write(topics.requests("me"), encoded(request))
        writer.flush()

    def answers(self) -> dict[str, dict[str, Any]]:
        """Return all answers, by the ids of their requests."""
        values = [one.value() for one in read_to_end(self.bootstrap, [topics.answers("me")])]
        found = [records.ANSWER.decode(value) for value in values if value]
        return {one["request"]: one for one in found}


@pytest.fixture(scope="module")
def engine(site: Any, encode: Callable[..., bytes]) -> Iterator[Engine]:
    """Yield an engine that answers, at a Kafka that holds a hundred alerts of 1 … 100 nJy."""
    site.write("alerts.sim", [encode(number, float(number)) for number in range(1, ALERTS + 1)])
    for topic in (topics.requests("me"), topics.answers("me")):
        ensure_topics(site.bootstrap, [topics.settings(topic)])
    engine = Engine(site.bootstrap, site.folder)
    yield engine
    engine.stop.set()
    engine.thread.join(20)


@pytest.fixture(scope="module")
def answered(engine: Engine, until: Callable[..., Any]) -> dict[str, dict[str, Any]]:
    """Return the answers to all attempts, asked at once, and to a good request behind them."""
    engine.ask({name: fields_of(name) for name in ATTEMPTS} | {"good": {}})
    until(lambda: "good" in engine.answers(), LONGEST_S * len(ATTEMPTS), lambda: str([*engine.answers()]))
    return engine.answers()


@pytest.mark.parametrize("name", ATTEMPTS)
def test_what_is_asked_is_answered(answered: Mapping[str, dict[str, Any]], name: str) -> None:
    answer = answered[name]
    said = " | ".join(answer["reasons"])
    assert re.search(ATTEMPTS[name]["said"], said), said[:2000]
    assert ATTEMPTS[name].get("accepted", answer["accepted"]) == answer["accepted"], said
    assert len(said) < 120_000


def test_who_asks_behind_them_is_served(answered: Mapping[str, dict[str, Any]]) -> None:
    assert answered["good"]["accepted"]


def test_what_cannot_be_read_is_counted_and_kept_with_its_text(
    engine: Engine, answered: Mapping[str, dict[str, Any]]
) -> None:
    kept = [headers_of(one)["reason"].decode() for one in read_to_end(engine.bootstrap, ["dead-letters"])]
    assert engine.outcomes.count(FAILED) == len(kept) == 2, kept
    assert all("cannot be read" in one for one in kept)


def test_a_request_at_which_the_engine_fails_is_refused_and_the_next_is_taken(
    engine: Engine, answered: object, monkeypatch: pytest.MonkeyPatch, until: Callable[..., Any]
) -> None:
    ask = SubmissionService.reply

    def reply(service: SubmissionService, request: Any, owner: str) -> Any:
        if request["id"] == "bad":
            raise IndexError("list index out of range \ud800" + 10**6 * "x")
        return ask(service, request, owner)

    monkeypatch.setattr(SubmissionService, "reply", reply)
    engine.ask({"bad": {}, "next": {}})
    until(lambda: "next" in engine.answers())
    answer = engine.answers()["bad"]
    assert not answer["accepted"]
    assert "made the engine fail: IndexError: list index" in answer["reasons"][0]
    assert engine.outcomes[-2:] == [FAILED, "accepted"]


def test_an_id_that_is_a_text_is_not_remembered(
    engine: Engine, answered: object, until: Callable[..., Any]
) -> None:
    engine.ask({3_000_000 * "i": {}})
    (short,) = until(lambda: [one for one in engine.answers() if one.startswith("iii")])
    assert len(short) == MAX_NAME
    assert not engine.answers()[short]["accepted"]


def test_the_longest_record_that_is_no_request_is_a_dead_letter_cut(
    engine: Engine, answered: object, until: Callable[..., Any]
) -> None:
    writer = Writer(producer(engine.bootstrap))
    writer.write(topics.requests("me"), b"\xff" * (MAX_MESSAGE - 100))
    writer.flush()

    def kept() -> list[bytes]:
        return [one.value() or b"" for one in read_to_end(engine.bootstrap, ["dead-letters"])]

    longest = until(lambda: [value for value in kept() if value.startswith(b"\xff")])[0]
    assert MAX_MESSAGE - 2 * OVERHEAD < len(longest) < MAX_MESSAGE


def test_filters_of_an_earlier_engine_are_read_once_at_the_start(engine: Engine, answered: object) -> None:
    """One has no facts of its text; another's text is beyond the limits, and is suspended."""
    ones = f"def never():\n    return {'+'.join('1' * 99_999)}\n"
    older = Codec(records.FILTER.schema_of(100_011))
    writer = Writer(producer(engine.bootstrap))
    for name, source in (("old", KEEP), ("deep", ones + KEEP)):
        about = {"name": name, "owner": "me", "version": 1, "live": True, "submitted": now_ms()}
        text = {"survey": "sim", "language": "python", "source": source, "entry": "keep"}
        value = wire.frame(100_011, older.encode(about | text))
        for key in (f"me/{name}/1", f"me/{name}"):
            writer.write(topics.FILTERS, value, key=key.encode())
    writer.flush()
    Catalog(engine.bootstrap).complete()
    known = read_filters(engine.bootstrap)
    assert known.live_version("me", "old") == 1
    assert known.versions["me", "old", 1]["facts"]
    assert known.live_version("me", "deep") == 0
    assert "cannot be parsed" in known.pointers["me", "deep"]["suspended"]
    with pytest.raises(FilterError):
        Catalog(engine.bootstrap).enable("me", "deep")
