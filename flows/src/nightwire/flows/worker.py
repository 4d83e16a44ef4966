"""A worker: it follows which flows there are, and runs the parts that are its own."""

import logging
import os
import re
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import pyarrow as pa
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from nightwire.core.access import WRITING, ReadRights, read_rights
from nightwire.core.kafka import admin, cluster_id, ensure_topics, enter, login
from nightwire.core.outside import may_be_mailed
from nightwire.core.presence import metrics_at, registered
from nightwire.core.runtime import Endpoints, MetricsPage, setup_logging, stopping
from nightwire.core.subscriptions import Flows
from nightwire.flows.engine import (
    Bridge,
    PartRunner,
    Plan,
    WayOut,
    compile_part,
    drop_leftovers,
    made_by,
    queues,
)
from nightwire.flows.lanes import Lanes
from nightwire.flows.log import FlowFollower, FlowRecord, parsed, readable
from nightwire.flows.model import Flow, FlowError, Stone, check
from nightwire.flows.problems import Teller
from nightwire.flows.terminals import BEFORE, VARIABLES, Limits
from nightwire.flows.terminals.mail import ALLOWED
from nightwire.schemas import SchemaRegistry
from nightwire.schemas.topics import FLOW_PROBLEMS, FLOWS, settings

log = logging.getLogger("nightwire.flows")

LOOK = 0.2
"""Longest time until a change is seen. [s]"""
QUIET = 60.0
"""Time after its last change until what a flow left goes: no worker is behind. [s]"""
RIGHTS = 10.0
"""Time between two looks at who may read and write what. [s]"""
AGAIN = 1.0
"""Time until a flow that cannot run is tried again: what it lacks may have come. [s]"""
OPERATORS = frozenset({"bridge", "file"})
"""Kinds of stones that operators alone have; a database's address is theirs to say, too."""
MAKING = frozenset({"window", "join", "transform"})
"""Kinds of stones that make what has another schema."""
MOST_STONES = 100
"""Most stones of all flows of an owner: a terminal is a thread."""
MOST_TOPICS = 100
"""Most topics `broker.OWNER.…`: flows of his make no more."""


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


class DeniedError(FlowError):
    """Who made a flow may not read or write what it does."""


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
        rights: Who may read and write what; a flow has those of who made it.
        problems: Why flows do not run as they should, by name.
        leaving: Whether nothing is begun any more.
    """

    asked: WorkerSettings
    registry: SchemaRegistry
    rights: ReadRights = field(default_factory=ReadRights)
    problems: dict[str, str] = field(default_factory=dict)
    leaving: bool = False
    _versions: dict[str, int] = field(default_factory=dict)
    _tried: dict[str, tuple[int, float]] = field(default_factory=dict)
    _owners: dict[str, str] = field(default_factory=dict)
    _lanes: Lanes = field(default_factory=Lanes)
    _flows: Flows = field(default_factory=dict)
    _burial: threading.Thread = field(default_factory=threading.Thread)
    _seen: dict[tuple[str, int], float] = field(default_factory=dict)
    _tidied: float = field(default_factory=time.monotonic)
    _parts: dict[Key, Part] = field(default_factory=dict)
    _looked: float = field(default_factory=time.monotonic)

    def follow(self, flows: Flows) -> None:
        """Run *flows* as they are now; one that cannot be goes on as it was.

        What changes is compiled and begun in a thread of its owner's: no other waits for it.
        """
        due, gone = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
        for name, owner in self._owners.copy().items():
            if name not in flows or flows[name][0].made_by != owner:
                gone[owner].append(name)
        for name, (record, version) in flows.items():
            if self._is_due(name, record, version):
                due[record.made_by].append(name)
        for owner in self._lanes.in_turn({*due, *gone}):
            work = partial(self._follow_his, gone[owner], due[owner], flows)
            self._lanes.start(owner, work)

    def _is_due(self, name: str, record: FlowRecord, version: int) -> bool:
        """Whether a flow is to be looked at: a change at once, what failed after `AGAIN`."""
        if self._versions.get(name) == version or self._owners.get(name, record.made_by) != record.made_by:
            return False
        tried, at = self._tried.get(name, (-1, 0.0))
        return tried != version or time.monotonic() - at >= AGAIN

    def _follow_his(self, gone: Collection[str], due: Collection[str], flows: Flows) -> None:
        """End flows of an owner: *gone*, and what he may not; then run those *due*."""
        for name in gone:
            self._apply(name, {})
            for known in (self._versions, self._tried, self.problems, self._owners):
                known.pop(name, None)
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
                self.problems.pop(name, None)
                self._versions[name] = version

    def _is_allowed(self, record: FlowRecord, version: int, flows: Flows) -> bool:
        """Return whether who made a flow may what it does; else it is stopped."""
        self._owners[record.name] = record.made_by
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
        if now - self._tidied <= QUIET:
            return
        if self._burial.is_alive():  # a large backlog: the others' turn comes
            return
        self._tidied = now
        quiet = {name for (name, _), since in self._seen.items() if now - since > QUIET}
        here = {name for name, (_, version) in flows.items() if self._versions.get(name) == version}
        done = [flows[name][0] for name in flows if name in quiet & here]
        names = {*flows} if "" in quiet else None

        def is_still(queue: str) -> bool:
            name = queue.split(".")[1]
            return self._flows.get(name, ("", -1))[1] == flows.get(name, ("", -1))[1]

        found = (self.asked.endpoints.kafka, readable(replace(one, paused=False) for one in done), names)
        self._burial = threading.Thread(target=self._drop_leftovers, args=(*found, is_still), daemon=True)
        self._burial.start()

    def _drop_leftovers(self, *found: Any) -> None:
        try:
            drop_leftovers(*found)
        except KafkaException as error:
            log.warning("queues that are left over stay: %s", error)

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
            self._versions = dict.fromkeys(self._versions, -1)  # each is compiled, and so checked

    def _note(self, name: str, version: int, error: Exception) -> None:
        """Note why flow *name* is not as it should be: one without rights stops, others stay."""
        denied = isinstance(error, DeniedError)
        if self.problems.get(name) != str(error):
            log.warning("flow %s %s: %s", name, "does not run" if denied else "stays as it was", error)
        self.problems[name] = str(error)
        self._tried[name] = version, time.monotonic()
        if denied:
            self._apply(name, {})

    def by_flow(self) -> dict[str, list[Part]]:
        """Return what runs here of each flow; nothing of one that cannot run."""
        found: dict[str, list[Part]] = {name: [] for name in self.problems.copy()}
        for (flow, _), one in self._parts.copy().items():
            found.setdefault(flow, []).append(one)
        return found

    def found(self) -> dict[tuple[str, str], tuple[int, str]]:
        """Return by flow and stone what does not run as it should: the flow's version, and why."""
        versions = {name: version for name, (_, version) in self._flows.items()}
        said = {(name, ""): why for name, why in self.problems.copy().items()}
        for (name, place), part in self._parts.copy().items():
            if why := part.problem:
                stone = "what runs in Kafka" if isinstance(part, PartRunner) else place.split("/")[1]
                said[name, stone] = why
        return {place: (versions[place[0]], why) for place, why in said.items() if place[0] in versions}

    def leave(self) -> None:
        """End all parts, each with its batch."""
        self.leaving, parts = True, self._parts.copy().values()
        for one in parts:
            one.leave()
        for one in parts:
            one.join(30)

    def _compile(self, record: FlowRecord, version: int, flows: Flows) -> dict[Key, Plan | Way]:
        """Return the parts of a flow that are ours."""
        flow = parsed(record.text)
        if flow.name != record.name:  # else it would run in place of another
            raise FlowError([f"the record of flow {record.name} holds flow {flow.name}"])
        older = [one for one, at in flows.values() if at < version]  # of a cycle the last one is refused
        topics = {*self._admin.list_topics(timeout=10).topics}
        types = check(flow, topics, self.registry.of_survey, [*readable(older)])
        operator = self.rights.allow(record.made_by, FLOWS, WRITING)
        if missing := {*_needed(flow)} - topics:
            if not operator:
                _check_topics(record.made_by, topics | missing)
            ensure_topics(self.asked.endpoints.kafka, [settings(one) for one in sorted(missing)])
            topics |= missing
        ours = sorted({"", self.asked.name} & flow.places)
        made = partial(
            compile_part, flow, version,
            types=types, topics=topics, registry=self.registry, owner=record.made_by,
        )  # fmt: skip
        parts: dict[Key, Plan | Way] = {(flow.name, at): one for at in ours if (one := made(at)).topics}
        ways = (one for one in flow.stones.values() if one.about.outside and one.at in ours)
        known = {"owner": "" if operator else record.made_by}
        told = (
            replace(one, options={**one.options, **known, "survey": types[one.inputs[0]].survey})
            for one in ways
        )
        return parts | {(flow.name, _way_key(one)): (flow, one) for one in told}

    @cached_property
    def _admin(self) -> AdminClient:
        return admin(self.asked.endpoints.kafka)

    def _apply(self, name: str, plans: Mapping[Key, Plan | Way]) -> None:
        for key in [key for key in self._parts.copy() if key[0] == name and key not in plans]:
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


def missing_rights(
    flow: Flow, owner: str, rights: ReadRights, others: Collection[Flow] = ()
) -> Iterator[str]:
    """Yield what *flow* does that *owner* may not, whose are *others* too.  Pure.

    Topics `broker.OWNER.…` are his own.  Who may write `flows` is an operator: he may all, and mail
    anybody.
    """
    own = f"broker.{owner}."
    yield from (f"{owner} may not read {topic}" for topic in flow.reads if not rights.allow(owner, topic))
    for topic in flow.writes:
        if not topic.startswith(own) and not rights.allow(owner, topic, WRITING):
            yield f"{owner} may not write {topic}; {own}STREAM he may"
    if not rights.allow(owner, FLOWS, WRITING):
        if sum(len(one.stones) for one in (flow, *others)) > MOST_STONES:
            yield f"the flows of {owner} have more than {MOST_STONES} stones"
        for stone in filter(_operators_own, flow.stones.values()):
            yield f"{owner} may have no {stone.kind} (stone {stone.name}): let the operator run that flow"
        yield from _foreign_variables(flow, owner)
        yield from _foreign_addresses(flow, owner, os.environ.get(ALLOWED, ""))


def _operators_own(stone: Stone) -> bool:
    """Whether *stone* may lead inside, and nobody judges that: to another Kafka, or to files."""
    return stone.kind in OPERATORS or not str(stone.options.get("database", BEFORE)).startswith(BEFORE)


def _foreign_variables(flow: Flow, owner: str) -> Iterator[str]:
    """Yield the variables of the worker that *flow* names and that are not *owner*'s."""
    own = f"{VARIABLES}{owner.upper().replace('-', '_')}__"
    for stone in flow.stones.values():
        for name, value in stone.options.items():
            if not isinstance(value, str) or not value.startswith(BEFORE):
                continue
            if re.fullmatch(own + r"[A-Z0-9]+(_[A-Z0-9]+)*", value.removeprefix(BEFORE)) is None:
                line = stone.lines.get(name, stone.lines.get("", 1))
                yield f"line {line}: {owner} may not use {value[:80]}; {BEFORE}{own}NAME he may"


def _foreign_addresses(flow: Flow, owner: str, allowed: str) -> Iterator[str]:
    """Yield whom *flow* would mail by the operator's server, which is not *allowed*."""
    for stone in flow.stones.values():
        to = stone.options["to"] if stone.kind == "email" else ()
        for one in [to] if isinstance(to, str) else to:
            if not may_be_mailed(one, allowed):
                yield (
                    f"line {stone.lines.get('to', 1)}: {owner} may not mail {one[:80]}; he may: "
                    f"{allowed or 'nobody'} (the operator names domains in {ALLOWED})"
                )


def _check_topics(owner: str, topics: Collection[str]) -> None:
    """Do nothing where *owner* may have *topics*, those that his flow would make among them.

    Raises:
        FlowError: There would be too many of his.
    """
    if sum(one.startswith(f"broker.{owner}.") for one in topics) > MOST_TOPICS:
        raise FlowError(
            [
                f"more than {MOST_TOPICS} topics broker.{owner}.…: ask the operator for "
                "`nightwire flow down NAME --purge` of a flow that ended"
            ]
        )


def _needed(flow: Flow) -> Iterator[str]:
    yield from queues(flow)
    written = (one.options["topic"] for one in flow.stones.values() if one.kind == "topic")
    yield from (topic for topic in written if topic.startswith("broker."))  # others are not ours to make
    if any(one.kind in MAKING for one in flow.stones.values()):
        yield made_by(flow)


class WorkerMetrics(Collector):
    """What a worker says of its flows; what they read and wrote, their accounts say."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics as they are now."""
        problem = GaugeMetricFamily(
            "nightwire_flows_problem", "1: it does not run as it should.", labels=["flow"]
        )
        retries = CounterMetricFamily(
            "nightwire_flows_retries",
            "Attempts at a terminal that failed and were made again.",
            labels=["flow"],
        )
        early = CounterMetricFamily(
            "nightwire_flows_closed_early",
            "Objects that a window or a join let go for want of room.",
            labels=["flow", "stone"],
        )
        for flow, found in self._worker.by_flow().items():
            problem.add_metric([flow], any(one.problem for one in found) or flow in self._worker.problems)
            retries.add_metric([flow], sum(one.retries for one in found))
            for part in found:
                for name, one in part.plan.keepers.items() if isinstance(part, PartRunner) else ():
                    early.add_metric([flow, name], one.early)
        yield from (problem, retries, early)


@contextmanager
def page(worker: Worker, port: int) -> Iterator[None]:
    """Show metrics within the block, where *port* is not 0."""
    registry = CollectorRegistry()
    registry.register(WorkerMetrics(worker))
    shown = MetricsPage(registry, port=port)
    if port:
        shown.start()
    try:
        yield
    finally:
        shown.stop()


def default_name() -> str:
    """Return the name of a worker that nobody named."""
    return f"{socket.gethostname()}-{os.getpid()}"


def told_of_limits(limits: Limits) -> dict[str, Any]:
    """Return what all may know of where a worker sends to: no address of a person."""
    named = (one.strip().lower() for one in os.environ.get(ALLOWED, "").split(","))
    return {"inside": limits.inside, "mail": sorted(one for one in named if one and "@" not in one)}


def serve(asked: WorkerSettings) -> None:
    """Run flows until a signal.

    Raises:
        KafkaException: Kafka refuses.
    """
    setup_logging("nightwire.flows")
    pa.array([0])  # its first array makes Arrow import pandas: not within the first batch
    kafka = enter(asked.endpoints.kafka)
    with ExitStack() as exits:
        stop = exits.enter_context(stopping())
        ensure_topics(kafka, [settings(FLOWS)])
        with suppress(KafkaException):  # an older Kafka's rights may lack it
            ensure_topics(kafka, [settings(FLOW_PROBLEMS)])
        url, which = asked.endpoints.schema_registry, partial(cluster_id, kafka)
        registry = exits.enter_context(SchemaRegistry(url, cluster_id=which, login=login(kafka)))
        who = f"flows {asked.name}"
        ends, about = metrics_at(asked.metrics_port), {"worker": asked.name, **told_of_limits(asked.limits)}
        exits.enter_context(registered(kafka, who, topic=FLOWS, endpoints=ends, capabilities=about))
        follower = exits.enter_context(FlowFollower(kafka))
        worker, teller = Worker(asked, registry, read_rights(kafka)), Teller(kafka, asked.name)
        exits.callback(teller.close)
        exits.callback(worker.leave)
        exits.enter_context(page(worker, asked.metrics_port))
        log.info("worker %s", asked.name)
        while not stop.is_set():
            worker.follow_rights()
            worker.follow(follower.flows())
            worker.tidy(follower.flows())
            teller.tell(worker.found())
            follower.await_change(LOOK)
    log.info("left")
