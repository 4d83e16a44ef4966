"""A flow reads and writes what who made it may, and nothing else."""

from datetime import UTC, datetime
from typing import Any, cast

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from flows.tests.running import alert, problems
from nightwire.core.access import ReadRights
from nightwire.core.runtime import Endpoints
from nightwire.core.subscriptions import FlowRecord
from nightwire.filters.cli.notify import mail_doubt
from nightwire.flows.engine import compile_part
from nightwire.flows.engine.events import Event, Origin
from nightwire.flows.model import Edge, EventType, FlowError, parse
from nightwire.flows.rights import MOST_STONES, MOST_TOPICS, check_topics, missing_rights
from nightwire.flows.serve import advertised_limits
from nightwire.flows.terminals import TerminalLimits
from nightwire.flows.worker import Worker, WorkerSettings, needed_topics
from nightwire.schemas import Codec, SchemaRegistry, sim_alert_schema
from tests._waiting import until

SOURCE = """
name = "a"
[sources.s]
topic = "alerts.sim"
"""
FLOW = """
name = "a"
[sources.s]
topic = "{source}"
[stones.t]
kind = "topic"
from = "s"
topic = "{output}"
"""


STONES = """
[stones.small]
kind = "transform"
from = "s"
lite = true
[stones.often]
kind = "window"
from = "s"
within = "1h"
function = "count"
[stones.known]
kind = "join"
from = "s"
within = "1h"
"""


class Subjects:
    """A registry, which notes who asks for which subject."""

    def __init__(self) -> None:
        self.asked: set[str] = set()

    def compatibility(self, subject: str) -> str:
        """Return a subject's level."""
        self.asked.add(subject)
        return "NONE"

    def register(self, subject: str, _schema: object) -> int:
        """Return a schema's id."""
        self.asked.add(subject)
        return 7

    def codec(self, _number: int) -> Codec:
        """Return the codec of simulated alerts."""
        return Codec(sim_alert_schema())


def test_what_stones_make_is_registered_for_topics_that_are_there() -> None:
    """Where Kafka asks for passwords, the registry asks who may write them."""
    flow, subjects = parse(SOURCE + STONES), cast("Any", Subjects())
    types = {Edge(node): EventType(survey="sim") for node in (*flow.sources, *flow.stones)}
    plan = compile_part(flow, 1, "", types=types, topics=[], registry=subjects)
    plan.runners["small"].run([Event(alert(1), None, Origin("alerts.sim", 0, 1))])
    assert {one.removesuffix("-value") for one in subjects.asked} == {"flow-state.a"}
    assert "flow-state.a" in needed_topics(flow)


def right(operation: AclOperation, topic: str) -> AclBinding:
    """Return a right of eve's to *topic*."""
    allow, literal = AclPermissionType.ALLOW, ResourcePatternType.LITERAL
    return AclBinding(ResourceType.TOPIC, topic, literal, "User:eve", "*", operation, allow)


RIGHTS = ReadRights([right(AclOperation.READ, "alerts.sim"), right(AclOperation.WRITE, "hers")], ["User:op"])


@pytest.mark.parametrize(
    ("owner", "source", "output", "wrong"),
    [
        ("eve", "alerts.sim", "hers", []),
        ("eve", "alerts.sim", "broker.eve.x", []),
        (
            "eve",
            "alerts.sim",
            "broker.evelyn.x",
            ["eve may not write broker.evelyn.x; broker.eve.STREAM he may"],
        ),
        ("eve", "filter.ann.x", "hers", ["eve may not read filter.ann.x"]),
        ("op", "filter.ann.x", "anything", []),
        ("nobody", "alerts.sim", "broker.nobody.x", ["nobody may not read alerts.sim"]),
    ],
)
def test_what_a_flow_may_is_what_its_owner_may(
    owner: str, source: str, output: str, wrong: list[str]
) -> None:
    flow = parse(FLOW.format(source=source, output=output))
    assert [*missing_rights(flow, owner, RIGHTS)] == wrong
    assert [*missing_rights(flow, owner, ReadRights())] == []  # where Kafka asks nobody


@pytest.mark.parametrize(
    ("kind", "options", "his"),
    [
        ("bridge", 'kafka = "10.0.0.1:9092"\ntopic = "x"', False),
        ("file", 'path = "x"', False),
        ("database", 'database = "sqlite:///x"\ntable = "x"', False),
        ("database", 'database = "env:NIGHTWIRE_FLOW_EVE__DATABASE"\ntable = "x"', True),
        ("vtp", 'to = "10.0.0.1:8098"', True),  # judged by its address
    ],
)
def test_what_could_lead_inside_is_the_operators(kind: str, options: str, his: bool) -> None:
    flow = parse(SOURCE + f'[stones.t]\nkind = "{kind}"\nfrom = "s"\n{options}\n')
    wrong = [] if his else [f"eve may have no {kind} (stone t): let the operator run that flow"]
    assert [*missing_rights(flow, "eve", RIGHTS)] == wrong
    assert [*missing_rights(flow, "op", RIGHTS)] == [*missing_rights(flow, "eve", ReadRights())] == []


def test_stones_of_one_owner_are_counted_together() -> None:
    stones = (f'[stones.t{number}]\nkind = "split"\nfrom = "s"\n' for number in range(MOST_STONES // 2 + 1))
    half = parse(SOURCE + "".join(stones))
    assert [*missing_rights(half, "eve", RIGHTS)] == []
    assert "more than" in "".join(missing_rights(half, "eve", RIGHTS, [half]))


def test_rights_stay_as_they_were_while_kafka_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(_kafka: str) -> ReadRights:
        raise TimeoutError

    monkeypatch.setattr("nightwire.flows.worker.read_rights", away)
    monkeypatch.setattr("nightwire.flows.worker.RIGHTS_INTERVAL", 0.0)
    worker = Worker(WorkerSettings(Endpoints("127.0.0.1:1", ""), "m"), SchemaRegistry(None), RIGHTS)
    worker.refresh_rights()
    assert worker.rights is RIGHTS


def test_a_right_taken_away_while_a_flow_begins_is_missed_by_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nightwire.flows.worker.read_rights", lambda _kafka: ReadRights([]))
    monkeypatch.setattr("nightwire.flows.worker.RIGHTS_INTERVAL", 0.0)
    monkeypatch.setattr(Worker, "_compile", lambda *_: {})
    monkeypatch.setattr(Worker, "_apply", lambda worker, *_: worker.refresh_rights())
    worker = Worker(WorkerSettings(Endpoints("127.0.0.1:1", ""), "m"), SchemaRegistry(None), RIGHTS)
    text = FLOW.format(source="alerts.sim", output="hers")
    flows = {"a": (FlowRecord("a", text, False, "eve", datetime.now(UTC)), 1)}
    until(lambda: worker.follow(flows) or problems(worker), "she may yet")


def test_a_flow_without_rights_does_not_run_and_says_why() -> None:
    worker = Worker(WorkerSettings(Endpoints("127.0.0.1:1", ""), "m"), SchemaRegistry(None), RIGHTS)
    text = FLOW.format(source="filter.ann.x", output="broker.eve.x")
    eves = FlowRecord("a", text, False, "eve", datetime.now(UTC))
    until(lambda: worker.follow({"a": (eves, 1)}) or problems(worker), "no problem")
    assert problems(worker) == {"a": "eve may not read filter.ann.x"}
    assert worker.hosted["a"].parts == {}
    worker.clean_up({"a": (eves, 2)})  # of what was not tried yet nothing is said
    assert worker.problems() == {("a", ""): (1, "eve may not read filter.ann.x")}


MAIL = '[stones.m]\nkind = "email"\nfrom = "s"\nto = {to}\n'


@pytest.mark.parametrize(
    ("to", "his"),
    [
        ('"ann@example.org"', True),
        ('["ann@Example.ORG", "bob@b.net"]', True),
        ('"ann@evil.net"', False),
        ('"ann@sub.example.org"', False),
        ('"a@evil.net, ann@example.org"', False),
        ('"<a@evil.net> ann@example.org"', False),
        ('"a@evil.net@example.org"', False),
    ],
)
def test_owners_mail_whom_the_operator_allows(to: str, his: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    flow = parse(SOURCE + MAIL.format(to=to))
    monkeypatch.setenv("NIGHTWIRE_FLOW_MAIL_TO", "example.org, bob@b.net")
    assert [one.split(" may not")[0] for one in missing_rights(flow, "eve", RIGHTS)] == (
        [] if his else ["line 8: eve"]
    )
    assert [*missing_rights(flow, "op", RIGHTS)] == []
    told = advertised_limits(TerminalLimits())
    assert told == {"inside": False, "mail": ["example.org"]}  # bob's address is his
    if to.startswith('"'):  # as `filter submit --notify mailto:…`
        assert ("example.org, and" in mail_doubt(to.strip('"'), [told])) is not his
    monkeypatch.delenv("NIGHTWIRE_FLOW_MAIL_TO")
    assert "he may: nobody" in "".join(missing_rights(flow, "eve", RIGHTS))


def test_flows_of_an_owner_make_so_many_topics() -> None:
    topics = [f"broker.eve.t{number}" for number in range(MOST_TOPICS)] + ["broker.evelyn.x"]
    check_topics("eve", topics)
    with pytest.raises(FlowError, match="more than 100 topics"):
        check_topics("eve", [*topics, "broker.eve.more"])


SECRETS = """
name = "a"
[sources.s]
topic = "alerts.sim"
[stones.t]
kind = "webhook"
from = "s"
url = "env:NIGHTWIRE_FLOW_{variable}"
"""


@pytest.mark.parametrize(
    ("owner", "variable", "his"),
    [
        ("eve", "EVE__HOOK_2", True),
        ("eve", "TOM", False),
        ("eve", "EVE_X__HOOK", False),
        ("eve", "EVE__X__HOOK", False),  # of eve--x
        ("eve", "EVE___HOOK", False),  # of eve-
        ("op", "TOM", True),
    ],
)
def test_variables_of_the_worker_are_their_owners(owner: str, variable: str, his: bool) -> None:
    """Whoever names a variable says where its value is sent."""
    flow = parse(SECRETS.format(variable=variable))
    assert [one.split(";")[0] for one in missing_rights(flow, owner, RIGHTS)] == (
        [] if his else [f"line 8: {owner} may not use env:NIGHTWIRE_FLOW_{variable}"]
    )
