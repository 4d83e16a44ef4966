"""The plan of a part of a flow: the topics that it reads, and the runners of its stones."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Message

from nightwire.core.kafka import MAX_MESSAGE
from nightwire.filters.delivery import TransformWriter, register_derived
from nightwire.filters.language import Condition
from nightwire.flows.engine.events import Event, Outcome, Rejection, Runner, distinct, event_of
from nightwire.flows.engine.join import EVENT_SCHEMA as JOIN_SCHEMA
from nightwire.flows.engine.join import JoinRunner
from nightwire.flows.engine.keyed_state import StatefulRunner
from nightwire.flows.engine.stones import (
    ConditionRunner,
    SandboxedFilterRunner,
    SandboxFunction,
    SplitRunner,
    TransformRunner,
    owner_sandbox,
)
from nightwire.flows.engine.window import EVENT_SCHEMA as WINDOW_SCHEMA
from nightwire.flows.engine.window import WindowRunner
from nightwire.flows.model import (
    ELSE,
    KEEP_AS_TRANSFORM,
    KEPT_FIELD,
    RETURNS,
    Edge,
    EventType,
    Flow,
    Stone,
    compile_filter,
    router_conditions,
    transform_of,
)
from nightwire.schemas import AlertDecoder, SchemaRegistry, survey
from nightwire.schemas.topics import flow_state

LARGEST = MAX_MESSAGE - (1 << 10)
"""Longest event that is written: our headers and Kafka's frame come on top. [byte]"""


@dataclass
class BatchResult:
    """The result of a batch: what its transaction writes.

    Attributes:
        outputs: Topics and the events that go there.
        dead_letters: Reasons by index of the record.
        state: Changes of the stones' state by stone and key; None for a tombstone.
        rejected: By index of the record, the stone that rejected it, and why.
        inbox: Events on their way to stones of the part, by stone.
        seen: Topic, identity and value of outputs that may come along several edges.
    """

    outputs: list[tuple[str, Event]] = field(default_factory=list)
    dead_letters: dict[int, str] = field(default_factory=dict)
    state: dict[tuple[str, str], bytes | None] = field(default_factory=dict)
    rejected: dict[int, str] = field(default_factory=dict)
    inbox: dict[str, list[Event]] = field(default_factory=dict)
    seen: set[tuple[str, str, bytes]] = field(default_factory=set)

    def write(self, topic: str, event: Event, *, once: bool) -> None:
        """Add *event* to the outputs; with *once*, not again where it came along another edge."""
        if once:
            known = (topic, event.identity, event.value)
            if known in self.seen:
                return
            self.seen.add(known)
        self.outputs.append((topic, event))

    def fate(self, index: int, delivered: Collection[int]) -> dict[str, Any]:
        """Return the arguments of `OffsetAccounts.count` for the record at *index*."""
        if index in delivered:
            return {"delivered": 1}
        if index in self.dead_letters:
            return {"dead_lettered": 1}
        return {"rejected": {self.rejected.get(index, "nowhere"): 1}}


@dataclass(frozen=True)
class Plan:
    """One part of a flow, in one version of the flow.

    Attributes:
        flow: The flow.
        version: Offset of the flow's record in `flows`.
        worker: The worker that sources and stones of the part name; empty for any.
        topics: The topics that it reads: by topic the source, or the stone whose queue it is.
        runners: By stone, in topological order.
    """

    flow: Flow
    version: int
    worker: str
    topics: Mapping[str, str]
    runners: Mapping[str, Runner]

    def run(self, messages: Sequence[Message]) -> BatchResult:
        """Return the result of *messages*.

        Raises:
            RegistryAwayError: Ask again later.
        """
        result = BatchResult()
        for index, message in enumerate(messages):
            node, event = self.topics[str(message.topic())], event_of(message, index)
            if node in self.flow.sources:
                self._pass_on(node, "", [event], result)
            else:
                result.inbox.setdefault(node, []).append(event)
        for name in self.runners:
            events = result.inbox.pop(name, [])
            if len(self.flow.stones[name].inputs) > 1:
                events = distinct(events)
            if events:
                self._run(name, events, result)
        return result

    def _run(self, name: str, events: list[Event], result: BatchResult) -> None:
        outcome: Outcome = self.runners[name].run(events)
        state_name = self.stateful[name].state_name if outcome.state else name
        result.state |= {(state_name, key): value for key, value in outcome.state.items()}
        passed = {one.index for some in outcome.passed.values() for one in some}
        result.rejected |= dict.fromkeys({one.index for one in events} - passed, name)
        for event, why in outcome.faults:
            reasons = result.rejected if isinstance(why, Rejection) else result.dead_letters
            reasons[event.index] = f"{name}: {why}"
        for port, some in outcome.passed.items():
            self._pass_on(name, port, some, result)

    def _pass_on(self, node: str, port: str, events: list[Event], result: BatchResult) -> None:
        """Give *events* that leave *node* to its followers: stones of this part, or topics."""
        followers = [*self.flow.followers(node, port)]
        if not followers:
            exit_ = f"{node}.{port}" if port else node
            result.rejected |= dict.fromkeys((one.index for one in events), exit_)
        for one in followers:
            if one.name in self.runners and one.kind != "join":
                result.inbox.setdefault(one.name, []).extend(events)
                continue
            topic = one.options["topic"] if one.kind == "topic" else self.flow.queue(one.name)
            for event in events:
                if event.size > LARGEST:  # Kafka would refuse it for ever, and all behind it
                    why = f"{one.name}: {event.size} bytes are too many to write"
                    result.dead_letters[event.index] = why
                else:
                    result.write(topic, event, once=len(one.inputs) > 1)

    @property
    def stateful(self) -> Mapping[str, StatefulRunner[Any]]:
        """The runners with state, by stone."""
        return {name: one for name, one in self.runners.items() if isinstance(one, StatefulRunner)}


def stones_of_part(flow: Flow, worker: str) -> list[Stone]:
    """Return the stones of the part of *worker*, without terminals."""
    return [one for one in flow.stones.values() if one.worker == worker and not one.spec.terminal]


def queue_topics(flow: Flow) -> list[str]:
    """Return the queues of a flow: between its parts, and before joins and terminals outside."""
    return [flow.queue(one.name) for one in flow.stones.values() if _has_queue(flow, one)]


def _has_queue(flow: Flow, stone: Stone) -> bool:
    if stone.spec.terminal:
        return stone.spec.outside
    return stone.kind == "join" or any(flow.worker_of(edge.node) != stone.worker for edge in stone.inputs)


def compile_part(
    flow: Flow,
    version: int,
    worker: str,
    *,
    types: Mapping[Edge, EventType],
    topics: Collection[str],
    registry: SchemaRegistry,
    owner: str = "",
) -> Plan:
    """Return the plan of the part of *worker* in *flow*.

    The part reads every queue of its stones that exists, though a stone may by now run in one
    process with those before it.

    Args:
        flow: The flow, checked.
        version: The flow's version.
        worker: The worker's name; empty for the part that any runs.
        types: The types of the flow's edges.
        topics: Names of all topics, queues among them.
        registry: Of schemas, where derived ones are registered.
        owner: The flow's owner: functions of one owner share a sandbox, of two owners never.

    Raises:
        FilterError: A condition cannot be compiled.
        SchemaError: A schema cannot be registered.
    """
    runners = {one.name: _runner(flow, one, types, registry, owner) for one in stones_of_part(flow, worker)}
    sources = {one.topic: one.name for one in flow.sources.values() if one.worker == worker}
    queued = {queue: name for name in runners if (queue := flow.queue(name)) in topics}
    return Plan(flow, version, worker, sources | queued, runners)


def schema_topic(flow: Flow) -> str:
    """Return the topic whose subject has the schemas of derived events.

    The topic exists: where Kafka asks for passwords, the registry asks who may write it.
    """
    return flow_state(flow.name)


def _runner(
    flow: Flow, stone: Stone, types: Mapping[Edge, EventType], registry: SchemaRegistry, owner: str
) -> Runner:
    of, decoder = types[stone.inputs[0]].survey, AlertDecoder(registry)
    match stone.kind:
        case "filter":
            source = stone.options.get("python", "")
            text = stone.options.get("where") or compile_filter(source, of).program
            if text is not None:
                return ConditionRunner({"": Condition(text, of)}, None, decoder, of)
            name = f"{flow.name}.{stone.name}"
            source, sandbox = source + KEEP_AS_TRANSFORM, owner_sandbox(owner)
            return SandboxedFilterRunner(SandboxFunction(sandbox, name, source, (KEPT_FIELD,)), of, registry)
        case "router":
            conditions = {port: Condition(text, of) for port, text in router_conditions(stone).items()}
            return ConditionRunner(conditions, ELSE, decoder, of)
        case "transform":
            transform, name = transform_of(stone, of), f"{flow.name}.{stone.name}"
            source = stone.options.get("python")
            sandbox = owner_sandbox(owner)
            function = SandboxFunction(sandbox, name, source, transform.adds) if source else None
            return TransformRunner(transform, of, schema_topic(flow), TransformWriter(registry), function)
        case "window" | "join":
            schema = JOIN_SCHEMA if stone.kind == "join" else WINDOW_SCHEMA
            schema_id = register_derived(registry, schema_topic(flow), schema)
            args = (flow.name, stone, survey(of), decoder, schema_id)
            if stone.kind == "window":
                return WindowRunner(*args)
            return JoinRunner(*args, returns=any(types[one].kind == RETURNS for one in stone.inputs))
    return SplitRunner()
