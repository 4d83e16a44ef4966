"""A worker: it follows which flows there are, and runs the parts that are its own."""

import logging
import os
import socket
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from nightwire.core.kafka import admin, cluster_id, ensure_topics, enter, login
from nightwire.core.presence import registered
from nightwire.core.runtime import Endpoints, setup_logging, stopping
from nightwire.flows.engine import Bridge, PartRunner, Plan, WayOut, compile_part, drop_leftovers, queues
from nightwire.flows.log import FlowFollower, FlowRecord, readable
from nightwire.flows.model import Flow, FlowError, Stone, check, parse
from nightwire.flows.terminals import Limits
from nightwire.schemas import SchemaRegistry
from nightwire.schemas.topics import FLOWS, flow_state, settings

log = logging.getLogger("nightwire.flows")

LOOK = 0.2
"""Longest time until a change is seen. [s]"""
QUIET = 60.0
"""Time after the last change until what is left of stones is deleted: no worker is behind. [s]"""
AGAIN = 1.0
"""Time until a flow that cannot run is tried again: what it lacks may have come. [s]"""


@dataclass(frozen=True)
class WorkerSettings:
    """What a worker was asked for.

    Attributes:
        endpoints: Where Kafka and the registry are.
        name: Its name, by which flows may ask for it.
        limits: What it allows to flows.
        takeover: After a crash, how long until another worker goes on. [s]
    """

    endpoints: Endpoints
    name: str
    limits: Limits = field(default_factory=Limits)
    takeover: float = 6.0


Way = tuple[Flow, Stone]
"""A terminal, whose option ``survey`` says whose alerts come, and its flow."""
Part = PartRunner | WayOut | Bridge
Key = tuple[str, str]
"""A flow and its part: a worker's name or an empty one, or, behind a slash, a terminal."""


@dataclass
class Worker:
    """The parts of flows that one process runs.

    Attributes:
        asked: What it was asked for.
        registry: Knows schemas.
        problems: Why flows do not run as they should, by name.
    """

    asked: WorkerSettings
    registry: SchemaRegistry
    problems: dict[str, str] = field(default_factory=dict)
    _versions: dict[str, int] = field(default_factory=dict)
    _seen: dict[str, int] = field(default_factory=dict)
    _since: float = 0.0
    _parts: dict[Key, Part] = field(default_factory=dict)

    def follow(self, flows: Mapping[str, tuple[FlowRecord, int]]) -> None:
        """Run *flows* as they are now; one that cannot be goes on as it was."""
        for name in self._versions.keys() - flows.keys():
            self._apply(name, {})
            del self._versions[name]
        self.problems = {name: why for name, why in self.problems.items() if name in flows}
        for name, (record, version) in flows.items():
            if self._versions.get(name) == version:
                continue
            try:
                self._apply(name, {} if record.paused else self._compile(record, version, flows))
            except Exception as error:  # noqa: BLE001  (one flow's text stops no other flow)
                if self.problems.get(name) != str(error):
                    log.warning("flow %s stays as it was: %s", name, error)
                self.problems[name] = str(error)
                continue
            self.problems.pop(name, None)
            self._versions[name] = version

    def tidy(self, flows: Mapping[str, tuple[FlowRecord, int]]) -> None:
        """Delete what is left of stones, where the flows have been as they are for a while."""
        seen = {name: version for name, (_, version) in flows.items()}
        if seen != self._seen:
            self._seen, self._since = seen, time.monotonic()
        elif time.monotonic() - self._since > QUIET:
            self._since = time.monotonic()
            try:
                drop_leftovers(self.asked.endpoints.kafka, readable(one for one, _ in flows.values()))
            except KafkaException as error:
                log.warning("queues that are left over stay: %s", error)

    def leave(self) -> None:
        """End all parts, each with its batch."""
        for one in self._parts.values():
            one.leave()
        for one in self._parts.values():
            one.join(30)

    def _compile(
        self, record: FlowRecord, version: int, flows: Mapping[str, tuple[FlowRecord, int]]
    ) -> dict[Key, Plan | Way]:
        """Return the parts of a flow that are ours."""
        flow = parse(record.text)
        if flow.name != record.name:  # else it would run in place of another
            raise FlowError([f"the record of flow {record.name} holds flow {flow.name}"])
        topics = {*self._admin.list_topics(timeout=10).topics}
        older = [one for one, at in flows.values() if at < version]  # of a cycle the last one is refused
        types = check(flow, topics, self.registry.of_survey, [*readable(older)])
        if missing := {*_needed(flow)} - topics:
            ensure_topics(self.asked.endpoints.kafka, [settings(one) for one in sorted(missing)])
            topics |= missing
        ours = sorted({"", self.asked.name} & flow.places)
        made = partial(compile_part, flow, version, types=types, topics=topics, registry=self.registry)
        parts: dict[Key, Plan | Way] = {(flow.name, at): one for at in ours if (one := made(at)).topics}
        ways = (one for one in flow.stones.values() if one.about.outside and one.at in ours)
        told = (replace(one, options={**one.options, "survey": types[one.inputs[0]].survey}) for one in ways)
        return parts | {(flow.name, _way_key(one)): (flow, one) for one in told}

    @cached_property
    def _admin(self) -> AdminClient:
        return admin(self.asked.endpoints.kafka)

    def _apply(self, name: str, plans: Mapping[Key, Plan | Way]) -> None:
        for key in [key for key in self._parts if key[0] == name and key not in plans]:
            self._leave(key, plans.values())
        for key, plan in plans.items():
            if (part := self._parts.get(key)) is None:
                part = self._parts[key] = self._made(plan)
                part.start()
            elif isinstance(part, PartRunner) and isinstance(plan, Plan):
                part.plan = plan
            elif isinstance(part, WayOut | Bridge) and not isinstance(plan, Plan) and part.stone != plan[1]:
                part.stone = plan[1]
            log.info("flow %s: part %r", *key)

    def _leave(self, key: Key, plans: Collection[Plan | Way]) -> None:
        """End a part; where another kind of stone goes on with its queue, wait for it."""
        part = self._parts.pop(key)
        part.leave()
        if any(key[1].split("/")[1:2] == [name] for plan in plans for name in _stones(plan)):
            part.join(10)
        log.info("flow %s: part %r left", *key)

    def _made(self, plan: Plan | Way) -> Part:
        kafka, takeover = self.asked.endpoints.kafka, self.asked.takeover
        if isinstance(plan, Plan):
            return PartRunner(kafka, self.asked.name, plan, takeover, self.asked.endpoints.archive)
        if plan[1].kind == "bridge":
            return Bridge(kafka, *plan, takeover)
        return WayOut(kafka, *plan, limits=self.asked.limits, takeover=takeover, registry=self.registry)


def _way_key(stone: Stone) -> str:
    return f"/{stone.name}/bridge" if stone.kind == "bridge" else f"/{stone.name}"


def _stones(plan: Plan | Way) -> Collection[str]:
    return plan.runners if isinstance(plan, Plan) else {plan[1].name}


def _needed(flow: Flow) -> Iterator[str]:
    yield from queues(flow)
    written = (one.options["topic"] for one in flow.stones.values() if one.kind == "topic")
    yield from (topic for topic in written if topic.startswith("broker."))  # others are not ours to make
    if any(one.kind in {"window", "join"} for one in flow.stones.values()):
        yield flow_state(flow.name)


def default_name() -> str:
    """Return the name of a worker that nobody named."""
    return f"{socket.gethostname()}-{os.getpid()}"


def serve(asked: WorkerSettings) -> None:
    """Run flows until a signal.

    Raises:
        KafkaException: Kafka refuses.
    """
    setup_logging("nightwire.flows")
    kafka = enter(asked.endpoints.kafka)
    with ExitStack() as exits:
        stop = exits.enter_context(stopping())
        ensure_topics(kafka, [settings(FLOWS)])
        url, who = asked.endpoints.schema_registry, partial(cluster_id, kafka)
        registry = exits.enter_context(SchemaRegistry(url, cluster_id=who, login=login(kafka)))
        about = {"worker": asked.name}
        exits.enter_context(registered(kafka, f"flows {asked.name}", topic=FLOWS, capabilities=about))
        follower = exits.enter_context(FlowFollower(kafka))
        worker = Worker(asked, registry)
        exits.callback(worker.leave)
        log.info("worker %s", asked.name)
        while not stop.is_set():
            worker.follow(follower.flows())
            worker.tidy(follower.flows())
            follower.await_change(AGAIN if worker.problems else LOOK)
    log.info("left")
