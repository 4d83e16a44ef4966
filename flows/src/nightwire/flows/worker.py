"""A worker: it follows the topic `flows`, and runs its own parts of them."""

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from nightwire.core.access import WRITING, ReadRights, read_rights
from nightwire.core.kafka import admin, ensure_topics
from nightwire.core.runtime import Endpoints
from nightwire.core.subscriptions import FlowRecord, Flows
from nightwire.flows.engine import (
    Bridge,
    PartRunner,
    Plan,
    TerminalRunner,
    compile_part,
    delete_orphaned_queues,
    queue_topics,
    schema_topic,
)
from nightwire.flows.flow_follower import parse_cached, running_flows
from nightwire.flows.model import Flow, FlowError, Stone, check
from nightwire.flows.rights import DeniedError, check_topics, missing_rights
from nightwire.flows.terminals import TerminalLimits
from nightwire.schemas import SchemaRegistry
from nightwire.schemas.topics import FLOWS, settings

log = logging.getLogger("nightwire.flows")

QUIET_TIME = 60.0
"""Time after a flow's last change until its orphaned queues go: no worker is behind. [s]"""
RIGHTS_INTERVAL = 10.0
"""Time between two readings of Kafka's ACLs. [s]"""
RETRY_INTERVAL = 1.0
"""Time until a flow that cannot run is tried again: its topics may exist by then. [s]"""
DERIVING_KINDS = frozenset({"window", "join", "transform"})
"""Kinds of stones whose events have a derived schema."""
MOST_OWNERS = 8
"""Most threads at once; other owners wait for one of these."""
NO_FLOW = None, -2
"""Record and version of a flow that is not there."""


@dataclass(frozen=True)
class WorkerSettings:
    """The settings of a worker.

    Attributes:
        endpoints: Addresses of Kafka, the registry and the archive.
        name: The worker's name, as `at` of a stone has it.
        limits: What terminals may reach.
        takeover: Session timeout: so long after a crash another worker goes on. [s]
        metrics_port: Port of the page of metrics; 0 for none.
    """

    endpoints: Endpoints
    name: str
    limits: TerminalLimits = field(default_factory=TerminalLimits)
    takeover: float = 6.0
    metrics_port: int = 0


FlowTerminal = tuple[Flow, Stone]
"""A flow and its terminal, whose option ``survey`` is that of the alerts that come in."""
Part = PartRunner | TerminalRunner | Bridge


class PartKey(NamedTuple):
    """A part of a flow: of a worker, empty for any; or of a terminal or bridge, by its *stone*."""

    worker: str = ""
    stone: str = ""
    is_bridge: bool = False


Plans = dict[PartKey, Plan | FlowTerminal]


@dataclass
class HostedFlow:
    """A flow in this worker.

    Attributes:
        owner: Who wrote its record.
        version: The version that runs, or is paused; -1 for none.
        parts: Its running parts.
        problem: Why its newest version does not run; empty where it does.
        tried: The version that failed last, and when. [s, monotonic]
    """

    owner: str
    version: int = -1
    parts: dict[PartKey, Part] = field(default_factory=dict)
    problem: str = ""
    tried: tuple[int, float] = (-1, 0.0)

    def is_due(self, record: FlowRecord, version: int) -> bool:
        """Whether *version* is to be compiled: a failed one after `RETRY_INTERVAL`."""
        if self.version == version or self.owner != record.made_by:
            return False
        tried, tried_at = self.tried
        return tried != version or time.monotonic() - tried_at >= RETRY_INTERVAL


class OwnerThreads:
    """Runs one function at a time for each owner, in a thread: nobody waits for another's."""

    def __init__(self) -> None:
        self._threads: dict[str, threading.Thread] = {}
        self._turn, self._last_turns = 0, dict[str, int]()

    def least_recent_first(self, owners: Iterable[str]) -> list[str]:
        """Return *owners*, the one whose work began the longest ago first."""
        return sorted(owners, key=lambda one: self._last_turns.get(one, 0))

    def start(self, owner: str, work: Callable[[], None]) -> None:
        """Run *work*, unless a function of *owner* runs yet, or those of too many owners."""
        self._threads = {name: one for name, one in self._threads.items() if one.is_alive()}
        if owner in self._threads or len(self._threads) >= MOST_OWNERS:
            return
        self._turn += 1
        self._last_turns[owner] = self._turn
        self._threads[owner] = threading.Thread(target=work, name=f"flows of {owner}", daemon=True)
        self._threads[owner].start()


@dataclass
class Worker:
    """The parts of flows that one process runs.

    Attributes:
        config: Its settings.
        registry: The schema registry.
        rights: Kafka's ACLs; a flow has its owner's rights.
        hosted: The flows, by name.
        leaving: Whether no part is started any more.
    """

    config: WorkerSettings
    registry: SchemaRegistry
    rights: ReadRights = field(default_factory=ReadRights)
    hosted: dict[str, HostedFlow] = field(default_factory=dict)
    leaving: bool = False
    _threads: OwnerThreads = field(default_factory=OwnerThreads)
    _flows: Flows = field(default_factory=dict)
    _cleaner: threading.Thread = field(default_factory=threading.Thread)
    _unchanged_since: dict[tuple[str, int], float] = field(default_factory=dict)
    _cleaned_at: float = field(default_factory=time.monotonic)
    _rights_read_at: float = field(default_factory=time.monotonic)

    def follow(self, flows: Flows) -> None:
        """Run *flows* as they are now; one whose new version cannot run goes on as it was.

        Changes are compiled and started in a thread for each owner.
        """
        due, gone = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
        for name, one in self.hosted.copy().items():
            if name not in flows or flows[name][0].made_by != one.owner:
                gone[one.owner].append(name)
        for name, (record, version) in flows.items():
            if self.hosted.get(name, HostedFlow(record.made_by)).is_due(record, version):
                due[record.made_by].append(name)
        for owner in self._threads.least_recent_first({*due, *gone}):
            work = partial(self._follow_owner, gone[owner], due[owner], flows)
            self._threads.start(owner, work)

    def _follow_owner(self, gone: Collection[str], due: Collection[str], flows: Flows) -> None:
        """End an owner's flows *gone* and those that he has no right to; then run those *due*."""
        for name in gone:
            self._apply(name, {})
            self.hosted.pop(name, None)
        rights, allowed = self.rights, [name for name in due if self._is_allowed(*flows[name], flows)]
        for name in allowed:
            record, version = flows[name]
            try:
                plans = {} if record.paused else self._compile(record, version, flows)
                if self.leaving or rights is not self.rights:
                    return  # the next text waits for the new rights
                self._apply(name, plans)
            except Exception as error:  # noqa: BLE001  (one flow's text stops no other flow)
                self._note_problem(name, version, error)
            else:
                self.hosted[name].problem, self.hosted[name].version = "", version
                if rights is not self.rights:  # since that was begun: check it again
                    self.hosted[name].version = -1

    def _is_allowed(self, record: FlowRecord, version: int, flows: Flows) -> bool:
        """Return whether a flow's owner has the rights that it needs; else stop it."""
        self.hosted.setdefault(record.name, HostedFlow(record.made_by))
        older = (one for one, of in flows.values() if of < version and one.made_by == record.made_by)
        try:
            flow, others = parse_cached(record.text), [*running_flows(older)]
            wrong = [] if record.paused else [*missing_rights(flow, record.made_by, self.rights, others)]
            if wrong:
                raise DeniedError(wrong)
        except FlowError as error:
            self._note_problem(record.name, version, error)
            return False
        return True

    def clean_up(self, flows: Flows) -> None:
        """Start a thread that deletes orphaned queues of flows unchanged for `QUIET_TIME`.

        A flow whose new version cannot run has its older stones still, a paused one all its own.
        Queues of ended flows go where no flow has begun or ended for that time.
        """
        now, self._flows = time.monotonic(), flows
        seen = [(name, version) for name, (_, version) in flows.items()] + [("", hash(frozenset(flows)))]
        self._unchanged_since = {one: self._unchanged_since.get(one, now) for one in seen}
        if now - self._cleaned_at <= QUIET_TIME or self._cleaner.is_alive():
            return
        self._cleaned_at = now
        quiet = {name for (name, _), since in self._unchanged_since.items() if now - since > QUIET_TIME}
        running = {(name, one.version) for name, one in self.hosted.copy().items()}
        done = [one for name, (one, version) in flows.items() if name in quiet and (name, version) in running]
        names = {*flows} if "" in quiet else None

        def is_orphaned(queue: str) -> bool:
            name = queue.split(".")[1]
            return self._flows.get(name, NO_FLOW)[1] == flows.get(name, NO_FLOW)[1]

        known = running_flows(replace(one, paused=False) for one in done)
        args = self.config.endpoints.kafka, known, names, is_orphaned
        self._cleaner = threading.Thread(target=_delete_orphaned_queues, args=args, daemon=True)
        self._cleaner.start()

    def refresh_rights(self) -> None:
        """Read Kafka's ACLs again, each `RIGHTS_INTERVAL`, and let all flows be checked by them."""
        if self.rights.bindings is None or time.monotonic() - self._rights_read_at < RIGHTS_INTERVAL:
            return
        self._rights_read_at = time.monotonic()
        try:
            rights = read_rights(self.config.endpoints.kafka)
        except (KafkaException, TimeoutError) as error:  # while Kafka is away, flows stand still
            log.warning("who may read and write what stays as it was known: %s", error)
            return
        if {*(rights.bindings or ())} != {*self.rights.bindings}:
            self.rights = rights
            for one in self.hosted.copy().values():
                one.version = -1  # compiled again, and so checked

    def _note_problem(self, name: str, version: int, error: Exception) -> None:
        """Note why flow *name* does not run in *version*; stop it where its owner lacks a right."""
        denied, one = isinstance(error, DeniedError), self.hosted[name]
        if one.problem != str(error):
            log.warning("flow %s %s: %s", name, "does not run" if denied else "stays as it was", error)
        one.problem, one.tried = str(error), (version, time.monotonic())
        if denied:
            self._apply(name, {})

    def problems(self) -> dict[tuple[str, str], tuple[int, str]]:
        """Return the problems by flow and stone, each the flow's version and the reason."""
        found: dict[tuple[str, str], tuple[int, str]] = {}
        for name, one in self.hosted.copy().items():
            found[name, ""] = one.tried[0], one.problem
            for key, part in one.parts.copy().items():
                stone = key.stone or "what runs in Kafka"
                found[name, stone] = self._flows.get(name, NO_FLOW)[1], part.problem
        return {key: why for key, why in found.items() if why[1] and key[0] in self._flows}

    def leave(self) -> None:
        """Stop all parts after their current batches."""
        self.leaving = True
        parts = [part for one in self.hosted.copy().values() for part in one.parts.copy().values()]
        for part in parts:
            part.leave()
        for part in parts:
            part.join(30)

    def _compile(self, record: FlowRecord, version: int, flows: Flows) -> Plans:
        """Return the plans of this worker's parts of a flow."""
        flow = parse_cached(record.text)
        if flow.name != record.name:  # else it would run in place of another
            raise FlowError([f"the record of flow {record.name} holds flow {flow.name}"])
        older = [one for one, of in flows.values() if of < version]  # of a cycle the last one is refused
        topics = {*self._admin.list_topics(timeout=10).topics}
        types = check(flow, topics, self.registry.of_survey, [*running_flows(older)])
        operator = self.rights.allow(record.made_by, FLOWS, WRITING)
        if missing := {*needed_topics(flow)} - topics:
            if not operator:
                check_topics(record.made_by, topics | missing)
            ensure_topics(self.config.endpoints.kafka, [settings(one) for one in sorted(missing)])
            topics |= missing
        ours = sorted({"", self.config.name} & flow.workers)
        made = partial(
            compile_part, flow, version,
            types=types, topics=topics, registry=self.registry, owner=record.made_by,
        )  # fmt: skip
        parts: Plans = {PartKey(name): one for name in ours if (one := made(name)).topics}
        for stone in flow.stones.values():
            if stone.spec.outside and stone.worker in ours:
                more = {"owner": "" if operator else record.made_by, "survey": types[stone.inputs[0]].survey}
                key = PartKey("", stone.name, stone.kind == "bridge")
                parts[key] = flow, replace(stone, options={**stone.options, **more})
        return parts

    @cached_property
    def _admin(self) -> AdminClient:
        return admin(self.config.endpoints.kafka)

    def _apply(self, name: str, plans: Plans) -> None:
        """Run *plans* of flow *name*; stop its other parts."""
        parts = self.hosted[name].parts
        for key in parts.keys() - plans.keys():
            gone = parts.pop(key)
            gone.leave()
            if any(key.stone in _stone_names(plan) for plan in plans.values()):
                gone.join(10)  # another kind of stone goes on with its queue
            log.info("flow %s: part %s left", name, key.stone or key.worker or "any")
        for key, plan in plans.items():
            if (part := parts.get(key)) is None:
                parts[key] = self._new_part(plan)
                parts[key].start()
            elif isinstance(part, PartRunner) and isinstance(plan, Plan):
                part.plan = plan
            elif not isinstance(part, PartRunner) and not isinstance(plan, Plan) and part.stone != plan[1]:
                part.stone = plan[1]
            log.info("flow %s: part %s", name, key.stone or key.worker or "any")

    def _new_part(self, plan: Plan | FlowTerminal) -> Part:
        kafka, takeover = self.config.endpoints.kafka, self.config.takeover
        if isinstance(plan, Plan):
            return PartRunner(kafka, self.config.name, plan, takeover, self.config.endpoints.archive)
        if plan[1].kind == "bridge":
            return Bridge(kafka, *plan, takeover)
        limits, registry = self.config.limits, self.registry
        return TerminalRunner(kafka, *plan, limits=limits, takeover=takeover, registry=registry)


def _delete_orphaned_queues(*args: Any) -> None:
    try:
        delete_orphaned_queues(*args)
    except KafkaException as error:
        log.warning("queues that are left over stay: %s", error)


def _stone_names(plan: Plan | FlowTerminal) -> Collection[str]:
    return plan.runners if isinstance(plan, Plan) else {plan[1].name}


def needed_topics(flow: Flow) -> Iterator[str]:
    """Yield the topics that *flow* needs and its worker makes: queues, state, `broker.…`."""
    yield from queue_topics(flow)
    written = (one.options["topic"] for one in flow.stones.values() if one.kind == "topic")
    yield from (topic for topic in written if topic.startswith("broker."))
    if any(one.kind in DERIVING_KINDS for one in flow.stones.values()):
        yield schema_topic(flow)
