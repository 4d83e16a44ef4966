"""A worker: it follows which flows there are, and runs the parts that are its own."""

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from nightwire.core.access import WRITING, ReadRights, read_rights
from nightwire.core.kafka import admin, ensure_topics
from nightwire.core.runtime import Endpoints
from nightwire.core.subscriptions import Flows
from nightwire.flows.engine import (
    Bridge,
    PartRunner,
    Plan,
    TerminalRunner,
    compile_part,
    delete_orphaned_queues,
    made_by,
    queues,
)
from nightwire.flows.log import FlowRecord, parsed, readable
from nightwire.flows.model import Flow, FlowError, Stone, check
from nightwire.flows.owner_threads import OwnerThreads
from nightwire.flows.rights import DeniedError, check_topics, missing_rights
from nightwire.flows.terminals import Limits
from nightwire.schemas import SchemaRegistry
from nightwire.schemas.topics import FLOWS, settings

log = logging.getLogger("nightwire.flows")

QUIET = 60.0
"""Time after its last change until what a flow left goes: no worker is behind. [s]"""
RIGHTS = 10.0
"""Time between two looks at who may read and write what. [s]"""
AGAIN = 1.0
"""Time until a flow that cannot run is tried again: what it lacks may have come. [s]"""
MAKING = frozenset({"window", "join", "transform"})
"""Kinds of stones that make what has another schema."""
NONE = None, -2
"""Record and version of a flow that is not there."""


@dataclass(frozen=True)
class WorkerSettings:
    """What a worker was asked for.

    Attributes:
        endpoints: Where Kafka and the registry are.
        name: Its name, by which flows may ask for it.
        limits: What it allows to flows.
        takeover: After a crash, how long until another worker goes on. [s]
        metrics_port: Of the page of metrics; 0 for none.
    """

    endpoints: Endpoints
    name: str
    limits: Limits = field(default_factory=Limits)
    takeover: float = 6.0
    metrics_port: int = 0


Way = tuple[Flow, Stone]
"""A terminal, whose option ``survey`` says whose alerts come, and its flow."""
Part = PartRunner | TerminalRunner | Bridge
Place = str
"""A part of a flow: a worker's name or an empty one, or, behind a slash, a terminal."""


@dataclass
class Hosted:
    """A flow, as a worker has it.

    Attributes:
        owner: Who made it so.
        version: The one that is at work, or paused; none yet: -1.
        parts: What runs of it here.
        problem: Why it does not run as it should; empty where it does.
        tried: The version that failed last, and when. [s]
    """

    owner: str
    version: int = -1
    parts: dict[Place, Part] = field(default_factory=dict)
    problem: str = ""
    tried: tuple[int, float] = (-1, 0.0)

    def is_due(self, record: FlowRecord, version: int) -> bool:
        """Whether it is to be looked at: a change at once, what failed after `AGAIN`."""
        if self.version == version or self.owner != record.made_by:
            return False
        tried, at = self.tried
        return tried != version or time.monotonic() - at >= AGAIN


@dataclass
class Worker:
    """The parts of flows that one process runs.

    Attributes:
        asked: What it was asked for.
        registry: Knows schemas.
        rights: Who may read and write what; a flow has those of who made it.
        hosted: The flows, by name.
        leaving: Whether nothing is begun any more.
    """

    asked: WorkerSettings
    registry: SchemaRegistry
    rights: ReadRights = field(default_factory=ReadRights)
    hosted: dict[str, Hosted] = field(default_factory=dict)
    leaving: bool = False
    _threads: OwnerThreads = field(default_factory=OwnerThreads)
    _flows: Flows = field(default_factory=dict)
    _burial: threading.Thread = field(default_factory=threading.Thread)
    _seen: dict[tuple[str, int], float] = field(default_factory=dict)
    _tidied: float = field(default_factory=time.monotonic)
    _looked: float = field(default_factory=time.monotonic)

    def follow(self, flows: Flows) -> None:
        """Run *flows* as they are now; one that cannot be goes on as it was.

        What changes is compiled and begun in a thread of its owner's: no other waits for it.
        """
        due, gone = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
        for name, one in self.hosted.copy().items():
            if name not in flows or flows[name][0].made_by != one.owner:
                gone[one.owner].append(name)
        for name, (record, version) in flows.items():
            if self.hosted.get(name, Hosted(record.made_by)).is_due(record, version):
                due[record.made_by].append(name)
        for owner in self._threads.least_recent_first({*due, *gone}):
            work = partial(self._follow_his, gone[owner], due[owner], flows)
            self._threads.start(owner, work)

    def _follow_his(self, gone: Collection[str], due: Collection[str], flows: Flows) -> None:
        """End flows of an owner: *gone*, and what he may not; then run those *due*."""
        for name in gone:
            self._apply(name, {})
            self.hosted.pop(name, None)
        rights, allowed = self.rights, [name for name in due if self._is_allowed(*flows[name], flows)]
        for name in allowed:
            record, version = flows[name]
            try:
                plans = {} if record.paused else self._compile(record, version, flows)
                if self.leaving or rights is not self.rights:
                    return  # what he may is looked at again, before the next text is
                self._apply(name, plans)
            except Exception as error:  # noqa: BLE001  (one flow's text stops no other flow)
                self._note(name, version, error)
            else:
                self.hosted[name].problem, self.hosted[name].version = "", version

    def _is_allowed(self, record: FlowRecord, version: int, flows: Flows) -> bool:
        """Return whether who made a flow may what it does; else it is stopped."""
        self.hosted.setdefault(record.name, Hosted(record.made_by))
        his = readable(one for one, at in flows.values() if at < version and one.made_by == record.made_by)
        try:
            flow = parsed(record.text)
            if not record.paused and (wrong := [*missing_rights(flow, record.made_by, self.rights, [*his])]):
                raise DeniedError(wrong)
        except FlowError as error:
            self._note(record.name, version, error)
            return False
        return True

    def tidy(self, flows: Flows) -> None:
        """Delete what is left of stones, where a flow has been as it is for a while.

        A flow that stays as it was has its older stones still; one that is paused has all its own.
        Queues of flows that ended go where none has come or ended for a while.
        """
        now, self._flows = time.monotonic(), flows
        seen = [(name, version) for name, (_, version) in flows.items()] + [("", hash(frozenset(flows)))]
        self._seen = {one: self._seen.get(one, now) for one in seen}
        if now - self._tidied <= QUIET or self._burial.is_alive():  # a large backlog: others' turn comes
            return
        self._tidied = now
        quiet = {name for (name, _), since in self._seen.items() if now - since > QUIET}
        here = {name for name, one in self.hosted.copy().items() if one.version == flows.get(name, NONE)[1]}
        done = [flows[name][0] for name in flows if name in quiet & here]
        names = {*flows} if "" in quiet else None

        def is_still(queue: str) -> bool:
            name = queue.split(".")[1]
            return self._flows.get(name, NONE)[1] == flows.get(name, NONE)[1]

        found = (self.asked.endpoints.kafka, readable(replace(one, paused=False) for one in done), names)
        self._burial = threading.Thread(target=_delete_orphaned_queues, args=(*found, is_still), daemon=True)
        self._burial.start()

    def follow_rights(self) -> None:
        """Look again, now and then, at who may read and write what: who no longer may stops."""
        if self.rights.bindings is None or time.monotonic() - self._looked < RIGHTS:
            return
        self._looked = time.monotonic()
        try:
            rights = read_rights(self.asked.endpoints.kafka)
        except (KafkaException, TimeoutError) as error:  # while Kafka is away, flows stand still
            log.warning("who may read and write what stays as it was known: %s", error)
            return
        if {*(rights.bindings or ())} != {*self.rights.bindings}:
            self.rights = rights
            for one in self.hosted.copy().values():
                one.version = -1  # each is compiled, and so checked

    def _note(self, name: str, version: int, error: Exception) -> None:
        """Note why flow *name* is not as it should be: one without rights stops, others stay."""
        denied, one = isinstance(error, DeniedError), self.hosted[name]
        if one.problem != str(error):
            log.warning("flow %s %s: %s", name, "does not run" if denied else "stays as it was", error)
        one.problem, one.tried = str(error), (version, time.monotonic())
        if denied:
            self._apply(name, {})

    def found(self) -> dict[tuple[str, str], tuple[int, str]]:
        """Return by flow and stone what does not run as it should: the flow's version, and why."""
        said: dict[tuple[str, str], tuple[int, str]] = {}
        for name, one in self.hosted.copy().items():
            said[name, ""] = one.tried[0], one.problem
            for place, part in one.parts.copy().items():
                stone = "what runs in Kafka" if isinstance(part, PartRunner) else place.split("/")[1]
                said[name, stone] = self._flows.get(name, NONE)[1], part.problem
        return {at: told for at, told in said.items() if told[1] and at[0] in self._flows}

    def leave(self) -> None:
        """End all parts, each with its batch."""
        self.leaving = True
        parts = [part for one in self.hosted.copy().values() for part in one.parts.copy().values()]
        for part in parts:
            part.leave()
        for part in parts:
            part.join(30)

    def _compile(self, record: FlowRecord, version: int, flows: Flows) -> dict[Place, Plan | Way]:
        """Return the parts of a flow that are ours."""
        flow = parsed(record.text)
        if flow.name != record.name:  # else it would run in place of another
            raise FlowError([f"the record of flow {record.name} holds flow {flow.name}"])
        older = [one for one, at in flows.values() if at < version]  # of a cycle the last one is refused
        topics = {*self._admin.list_topics(timeout=10).topics}
        types = check(flow, topics, self.registry.of_survey, [*readable(older)])
        operator = self.rights.allow(record.made_by, FLOWS, WRITING)
        if missing := {*needed_topics(flow)} - topics:
            if not operator:
                check_topics(record.made_by, topics | missing)
            ensure_topics(self.asked.endpoints.kafka, [settings(one) for one in sorted(missing)])
            topics |= missing
        ours = sorted({"", self.asked.name} & flow.places)
        made = partial(
            compile_part, flow, version,
            types=types, topics=topics, registry=self.registry, owner=record.made_by,
        )  # fmt: skip
        parts: dict[Place, Plan | Way] = {at: one for at in ours if (one := made(at)).topics}
        for way in flow.stones.values():
            if way.about.outside and way.at in ours:
                more = {"owner": "" if operator else record.made_by, "survey": types[way.inputs[0]].survey}
                kind = "/bridge" if way.kind == "bridge" else ""
                parts[f"/{way.name}{kind}"] = flow, replace(way, options={**way.options, **more})
        return parts

    @cached_property
    def _admin(self) -> AdminClient:
        return admin(self.asked.endpoints.kafka)

    def _apply(self, name: str, plans: Mapping[Place, Plan | Way]) -> None:
        """Run *plans* of flow *name*, and no other part of it."""
        parts = self.hosted[name].parts
        for place in parts.keys() - plans.keys():
            gone = parts.pop(place)
            gone.leave()
            if any(place.split("/")[1:2] == [stone] for plan in plans.values() for stone in _stones(plan)):
                gone.join(10)  # another kind of stone goes on with its queue
            log.info("flow %s: part %r left", name, place)
        for place, plan in plans.items():
            if (part := parts.get(place)) is None:
                parts[place] = self._made(plan)
                parts[place].start()
            elif isinstance(part, PartRunner) and isinstance(plan, Plan):
                part.plan = plan
            elif (
                isinstance(part, TerminalRunner | Bridge)
                and not isinstance(plan, Plan)
                and part.stone != plan[1]
            ):
                part.stone = plan[1]
            log.info("flow %s: part %r", name, place)

    def _made(self, plan: Plan | Way) -> Part:
        kafka, takeover = self.asked.endpoints.kafka, self.asked.takeover
        if isinstance(plan, Plan):
            return PartRunner(kafka, self.asked.name, plan, takeover, self.asked.endpoints.archive)
        if plan[1].kind == "bridge":
            return Bridge(kafka, *plan, takeover)
        return TerminalRunner(
            kafka, *plan, limits=self.asked.limits, takeover=takeover, registry=self.registry
        )


def _delete_orphaned_queues(*found: Any) -> None:
    try:
        delete_orphaned_queues(*found)
    except KafkaException as error:
        log.warning("queues that are left over stay: %s", error)


def _stones(plan: Plan | Way) -> Collection[str]:
    return plan.runners if isinstance(plan, Plan) else {plan[1].name}


def needed_topics(flow: Flow) -> Iterator[str]:
    """Yield the topics that *flow* needs, and that are ours to make."""
    yield from queues(flow)
    written = (one.options["topic"] for one in flow.stones.values() if one.kind == "topic")
    yield from (topic for topic in written if topic.startswith("broker."))
    if any(one.kind in MAKING for one in flow.stones.values()):
        yield made_by(flow)
