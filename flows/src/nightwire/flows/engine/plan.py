"""The part of a flow that one worker runs: which topics it reads, and what it does with records."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Message

from nightwire.core.kafka import MAX_MESSAGE
from nightwire.filters.delivery import TransformWriter, register_derived
from nightwire.filters.language import Condition
from nightwire.flows.engine.events import Event, Lacking, Outcome, Runner, distinct, event_of
from nightwire.flows.engine.join import EVENT_SCHEMA as JOIN_SCHEMA
from nightwire.flows.engine.join import JoinRunner
from nightwire.flows.engine.keyed_state import StatefulRunner
from nightwire.flows.engine.stones import Function, Keeping, Sorter, SplitRunner, TransformRunner, contained
from nightwire.flows.engine.window import EVENT_SCHEMA as WINDOW_SCHEMA
from nightwire.flows.engine.window import WindowRunner
from nightwire.flows.model import (
    ELSE,
    RETURNS,
    SAID,
    SAYS,
    Edge,
    EventType,
    Flow,
    Stone,
    compiled,
    router_conditions,
    transform_of,
)
from nightwire.schemas import AlertDecoder, SchemaRegistry, survey
from nightwire.schemas.topics import flow_state

LARGEST = MAX_MESSAGE - (1 << 10)
"""Longest event that is written: our own headers and Kafka's frame are beside it. [byte]"""


@dataclass
class Written:
    """What is to be written of a batch.

    Attributes:
        outputs: Events and the topics that they go to.
        dead: Records that no stone could use, by index, and why.
        state: What stones keep from now on, by stone and key; None: nothing more of it.
        rejected: By index, the stone that let the record go no further, and what it lacked there.
        seen: Topics, identities and values, of outputs that may come by several ways.
    """

    outputs: list[tuple[str, Event]] = field(default_factory=list)
    dead: dict[int, str] = field(default_factory=dict)
    state: dict[tuple[str, str], bytes | None] = field(default_factory=dict)
    rejected: dict[int, str] = field(default_factory=dict)
    seen: set[tuple[str, str, bytes]] = field(default_factory=set)

    def write(self, topic: str, event: Event, *, once: bool) -> None:
        """Note that *event* goes to *topic*; with *once*, not again where it came another way."""
        if once:
            known = (topic, event.identity, event.value)
            if known in self.seen:
                return
            self.seen.add(known)
        self.outputs.append((topic, event))

    def fate(self, at: int, delivered: Collection[int]) -> dict[str, Any]:
        """Return the class of the record *at*, as `OffsetAccounts.count` takes it."""
        if at in delivered:
            return {"delivered": 1}
        return (
            {"dead_lettered": 1} if at in self.dead else {"rejected": {self.rejected.get(at, "nowhere"): 1}}
        )


@dataclass(frozen=True)
class Plan:
    """What one part of a flow does, in one version of it.

    Attributes:
        flow: The flow.
        version: Offset of its record in `flows`.
        at: The part: the worker that its sources and stones name; empty for any.
        topics: What it reads: by topic the source or stone whose events lie there.
        runners: What its stones do, in order.
    """

    flow: Flow
    version: int
    at: str
    topics: Mapping[str, str]
    runners: Mapping[str, Runner]

    def run(self, messages: Sequence[Message]) -> Written:
        """Return what becomes of *messages*.

        Raises:
            RegistryAwayError: Ask again later.
        """
        written, inbox = Written(), dict[str, list[Event]]()
        for at, message in enumerate(messages):
            node, event = self.topics[str(message.topic())], event_of(message, at)
            if node in self.flow.sources:
                self._pass_on(node, "", [event], inbox, written)
            else:
                inbox.setdefault(node, []).append(event)
        for name, runner in self.runners.items():
            events = inbox.pop(name, [])
            if len(self.flow.stones[name].inputs) > 1:
                events = distinct(events)
            if events:
                self._run(name, runner, events, inbox, written)
        return written

    def _run(
        self, name: str, runner: Runner, events: list[Event], inbox: dict[str, list[Event]], written: Written
    ) -> None:
        outcome: Outcome = runner.run(events)
        state_name = self.stateful[name].state_name if outcome.state else name
        written.state |= {(state_name, key): value for key, value in outcome.state.items()}
        gone = {one.at for one in events} - {one.at for some in outcome.passed.values() for one in some}
        written.rejected |= dict.fromkeys(gone, name)
        for event, why in outcome.faults:
            said = written.rejected if isinstance(why, Lacking) else written.dead
            said[event.at] = f"{name}: {why}"
        for port, passed in outcome.passed.items():
            self._pass_on(name, port, passed, inbox, written)

    def _pass_on(
        self, node: str, port: str, events: list[Event], inbox: dict[str, list[Event]], written: Written
    ) -> None:
        """Give what leaves *node* to those that come next: stones here, or topics."""
        followers = [*self.flow.followers(node, port)]
        if not followers:
            written.rejected |= dict.fromkeys((one.at for one in events), f"{node}.{port}" if port else node)
        for one in followers:
            if one.name in self.runners and one.kind != "join":
                inbox.setdefault(one.name, []).extend(events)
            else:
                topic = one.options["topic"] if one.kind == "topic" else self.flow.queue(one.name)
                for event in events:
                    if event.size > LARGEST:  # Kafka would refuse it for ever, and all behind it
                        written.dead[event.at] = f"{one.name}: {event.size} bytes are too many to write"
                    else:
                        written.write(topic, event, once=len(one.inputs) > 1)

    @property
    def stateful(self) -> Mapping[str, StatefulRunner[Any]]:
        """Its stones that keep something, by name."""
        return {name: one for name, one in self.runners.items() if isinstance(one, StatefulRunner)}


def stones_of_part(flow: Flow, at: str) -> list[Stone]:
    """Return the stones of a part: those that run in Kafka, at one worker."""
    return [one for one in flow.stones.values() if one.at == at and not one.about.terminal]


def queue_topics(flow: Flow) -> list[str]:
    """Return the topics that a flow needs between its parts, and before what leaves Kafka."""
    return [flow.queue(one.name) for one in flow.stones.values() if _has_queue(flow, one)]


def _has_queue(flow: Flow, stone: Stone) -> bool:
    if stone.about.terminal:
        return stone.about.outside
    return stone.kind == "join" or any(flow.at(edge.node) != stone.at for edge in stone.inputs)


def compile_part(
    flow: Flow,
    version: int,
    at: str,
    *,
    types: Mapping[Edge, EventType],
    topics: Collection[str],
    registry: SchemaRegistry,
    owner: str = "",
) -> Plan:
    """Return what part *at* of *flow* does.

    What waits in the queue of a stone is read by whoever has the stone, though it may run in one
    process with those before it by now.

    Args:
        flow: The flow, checked.
        version: Its version.
        at: Which part: a worker's name, or empty.
        types: What goes along its edges.
        topics: Names of all topics, queues among them.
        registry: Knows schemas, and gives ids to new ones.
        owner: Who made it: functions of one owner share a sandbox, of two owners never.

    Raises:
        FilterError: A condition is none.
        SchemaError: A schema cannot be registered.
    """
    runners = {one.name: _runner(flow, one, types, registry, owner) for one in stones_of_part(flow, at)}
    sources = {one.topic: one.name for one in flow.sources.values() if one.at == at}
    queued = {queue: name for name in runners if (queue := flow.queue(name)) in topics}
    return Plan(flow, version, at, sources | queued, runners)


def schema_topic(flow: Flow) -> str:
    """Return the topic under whose name schemas of what stones make are registered.

    It is there: where Kafka asks for passwords, the registry asks who may write it.
    """
    return flow_state(flow.name)


def _runner(
    flow: Flow, stone: Stone, types: Mapping[Edge, EventType], registry: SchemaRegistry, owner: str
) -> Runner:
    of, decoder = types[stone.inputs[0]].survey, AlertDecoder(registry)
    match stone.kind:
        case "filter":
            source = stone.options.get("python", "")
            text = stone.options.get("where") or compiled(source, of).program
            if text is not None:
                return Sorter({"": Condition(text, of)}, None, decoder, of)
            name = f"{flow.name}.{stone.name}"
            return Keeping(Function(contained(owner), owner, name, source + SAYS, (SAID,)), of, registry)
        case "router":
            conditions = {port: Condition(text, of) for port, text in router_conditions(stone).items()}
            return Sorter(conditions, ELSE, decoder, of)
        case "transform":
            transform, name = transform_of(stone, of), f"{flow.name}.{stone.name}"
            source = stone.options.get("python")
            function = Function(contained(owner), owner, name, source, transform.adds) if source else None
            return TransformRunner(transform, of, schema_topic(flow), TransformWriter(registry), function)
        case "window" | "join":
            made = JOIN_SCHEMA if stone.kind == "join" else WINDOW_SCHEMA
            number = register_derived(registry, schema_topic(flow), made)
            kept = (flow.name, stone, survey(of), decoder, number)
            if stone.kind == "window":
                return WindowRunner(*kept)
            return JoinRunner(*kept, returns=any(types[one].kind == RETURNS for one in stone.inputs))
    return SplitRunner()
