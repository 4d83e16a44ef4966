"""A part of a flow at work: records in, records out, positions and state, by Kafka's transactions.

What is read, made and kept of a batch is committed as one, so a process that is killed loses and
doubles nothing.  Between two batches another plan may take the place of the one at work.
"""

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.consumers.source import milliseconds, parse_since
from nightwire.core.accounting import (
    OffsetAccounts,
    read_accounts,
    send_message_to_dead_letters,
    write_account,
)
from nightwire.core.kafka import (
    TRANSIENT_ERRORS,
    GroupOffsets,
    TopicPartition,
    Writer,
    consumer,
    fenced_producer,
    login,
    read_to_end,
    retry_while_unavailable,
)
from nightwire.core.presence import ArchiveClient
from nightwire.flows.engine.past import EXPIRED, Past
from nightwire.flows.engine.plan import Plan, Written
from nightwire.flows.engine.restarting_thread import RestartingThread
from nightwire.flows.model import ENDS
from nightwire.schemas.topics import flow_state

BATCH = 500
"""Most records of a transaction."""
POLL = 0.05
"""Longest wait for records: so soon another plan is seen. [s]"""
HEARTBEAT = 100
"""Time between heartbeats, and so until others notice that a part moves. [ms]"""
TRANSACTION_TIMEOUT = 10_000
"""After a crash, how long until Kafka drops what was half written. [ms]"""

REBALANCING = frozenset(
    {KafkaError.ILLEGAL_GENERATION, KafkaError.REBALANCE_IN_PROGRESS, KafkaError.UNKNOWN_MEMBER_ID}
)
"""Errors that say that partitions come and go just now."""


class PartRunner(RestartingThread):
    """Runs a part of a flow until it is told to leave.

    Args:
        bootstrap: Kafka's address.
        worker: Name of this process.
        plan: What to do at first.
        takeover: After a crash, how long until another worker has its partitions. [s]
        archive: URL of what has what Kafka has forgotten; None where nothing has.
    """

    def __init__(
        self, bootstrap: str, worker: str, plan: Plan, takeover: float, archive: str | None = None
    ) -> None:
        super().__init__(f"flow-{plan.flow.name}-{plan.at}")
        self._kafka, self.plan, self._takeover, self._archive = bootstrap, plan, takeover, archive
        self._id = f"flow-{plan.flow.name}-{plan.at}-{worker}"

    def session(self, reset_backoff: Callable[[], None]) -> None:
        """Run transactions until `leaving` is set."""
        past = Past(ArchiveClient(self._archive, login(self._kafka)) if self._archive else None)
        try:
            Session(self._kafka, self._id, self, self._takeover, past).run(self.leaving, reset_backoff)
        finally:
            past.close()


class Session:
    """A consumer and a transactional producer, which live and fall together.

    Args:
        bootstrap: Kafka's address.
        name: Of the transactions: who begins with it ends those of a predecessor.
        part: Whose plan is run.
        takeover: As for `PartRunner`. [s]
        past: Gives what Kafka has forgotten.
    """

    def __init__(self, bootstrap: str, name: str, part: PartRunner, takeover: float, past: Past) -> None:
        self._bootstrap, self._name, self._part, self._takeover = bootstrap, name, part, takeover
        self._past, self._positions = past, GroupOffsets(bootstrap)
        self._plan = part.plan
        self._accounts = OffsetAccounts(self._plan.flow.group)
        self._starts: dict[TopicPartition, int] = {}
        self._next: dict[TopicPartition, int] = {}
        self._joined = False

    def run(self, leave: threading.Event, reset_backoff: Callable[[], None]) -> None:
        """Work until *leave* is set; call *reset_backoff* after each transaction."""
        source = consumer(
            self._bootstrap,
            group=self._plan.flow.group,
            auto_offset_reset="earliest",
            session_timeout_ms=int(self._takeover * 1000),
            heartbeat_interval_ms=HEARTBEAT,
            partition_assignment_strategy="range",
        )
        try:
            self._subscribe(source)
            sink = transactional(self._bootstrap, self._name)  # the group forms meanwhile
            while not leave.is_set():
                self._follow_plan(source)
                messages = self._batch(source)
                if messages or self._starts:
                    self._transact(source, sink, messages)
                    reset_backoff()
                elif self._joined:
                    self._part.problem = ""  # nothing waits for it here
        finally:
            self._positions.keep(())
            source.close()

    def _follow_plan(self, source: Consumer) -> None:
        """Take the newest plan; what its stones keep goes along."""
        if (plan := self._part.plan) is self._plan:
            return
        before, self._plan = self._plan, plan
        for name, runner in plan.stateful.items():
            if type(old := before.stateful.get(name)) is type(runner) and old.state_name == runner.state_name:
                runner.adopt(old)
        if _state_names(plan) - _state_names(before):
            self._restore()
        if plan.topics.keys() != before.topics.keys():
            self._subscribe(source)

    def _subscribe(self, source: Consumer) -> None:
        source.subscribe([*self._plan.topics], on_assign=self._assigned, on_revoke=self._revoked)

    def _assigned(self, source: Consumer, partitions: list[TopicPartitionOffset]) -> None:
        """Begin where the flow stopped; what is new begins as its source says, which is kept."""
        known = retry_while_unavailable(lambda: source.committed(partitions, timeout=15), patience=20)
        go_on_in_queues(self._positions, known)
        for one in known:
            if one.offset < 0:
                one.offset = self._start(source, one)
                self._starts[one.topic, one.partition] = one.offset
            self._next[one.topic, one.partition] = one.offset
            self._accounts.begin((one.topic, one.partition), one.offset)
        self._accounts.changed()
        self._restore()
        for one in known:
            one.offset = self._past.until(source, one)
        source.assign(known)
        source.pause([one for one in known if (one.topic, one.partition) in self._past.ends])
        self._joined = True

    def _revoked(self, source: Consumer, partitions: list[TopicPartitionOffset]) -> None:
        """Let *partitions* go: what was read of them is committed."""
        for one in partitions:
            self._next.pop((one.topic, one.partition), None)
            self._starts.pop((one.topic, one.partition), None)
            self._past.ends.pop((one.topic, one.partition), None)
        source.unassign()

    def _batch(self, source: Consumer) -> list[Message]:
        """Return what comes next; partitions may go while Kafka is asked, the archive's too."""
        archived = self._archived(source)
        return self._ours(source, archived + records(source.consume(BATCH, 0.0 if archived else POLL)))

    def _archived(self, source: Consumer) -> list[Message]:
        """Return what comes next of what Kafka has forgotten; after the last, go on with Kafka."""
        for here, end in [*self._past.ends.items()]:
            if here[0] not in self._plan.topics:
                continue
            found, after = self._past.records(here, range(self._next[here], end))
            if after < end or self._past.until(source, TopicPartitionOffset(*here, end)) > end:
                return found  # there is more: Kafka may have forgotten it meanwhile
            del self._past.ends[here]
            if not found and self._next[here] < end:
                missing = end - self._next[here]
                self._accounts.count(here, end - 1, missing, rejected={EXPIRED: missing})
                self._next[here] = self._starts[here] = end
            source.resume([TopicPartitionOffset(*here)])
            if found:
                return found
        return []

    def _ours(self, source: Consumer, messages: list[Message]) -> list[Message]:
        """Return the records that are ours, and new.

        While partitions come and go there may be some of those that have gone.  Those of a topic
        that the plan does not read are put back: the next plan may.
        """
        found: list[Message] = []
        for one in messages:
            here, offset = place(one), one.offset() or 0
            if offset < self._next.get(here, offset + 1):
                continue
            if here[0] in self._plan.topics:
                found.append(one)
            else:
                with suppress(KafkaException):
                    source.seek(TopicPartitionOffset(*here, self._next[here]))
        return found

    def _start(self, source: Consumer, one: TopicPartitionOffset) -> int:
        low, high = source.get_watermark_offsets(one, timeout=10)
        node = self._plan.flow.sources.get(self._plan.topics.get(one.topic, ""))
        begin = "start" if node is None else node.begin
        if begin in ENDS:
            return int(high if begin == "end" else low)
        at = milliseconds(parse_since(begin), datetime.now(UTC))
        first = self._past.first(source, one, at)
        return int(high if first is None else first)

    def _restore(self) -> None:
        """Read what stones keep: another worker may have kept it until now."""
        stateful = self._plan.stateful
        if not stateful:
            return
        state: dict[str, dict[str, bytes]] = {one.state_name: {} for one in stateful.values()}
        for message in read_to_end(self._bootstrap, [flow_state(self._plan.flow.name)], settled=True):
            stone, _, key = (message.key() or b"").decode(errors="replace").partition("/")
            if stone not in state:
                continue
            if (value := message.value()) is None:
                state[stone].pop(key, None)
            else:
                state[stone][key] = value
        for runner in stateful.values():
            runner.restore(state[runner.state_name])

    def _transact(self, source: Consumer, sink: Producer, messages: list[Message]) -> None:
        """Write what becomes of *messages*, and that they are read, as one."""
        sink.begin_transaction()
        positions = {place(one): (one.offset() or 0) + 1 for one in messages}
        offsets = [TopicPartitionOffset(*one, at) for one, at in {**self._starts, **positions}.items()]
        try:
            self._write(Writer(sink), messages, self._plan.run(messages))
            sink.send_offsets_to_transaction(offsets, source.consumer_group_metadata())
            sink.commit_transaction()
        except KafkaException as error:
            sink.abort_transaction(10)
            if error.args[0].code() not in REBALANCING:
                raise
            self._again(source)
            return
        except BaseException:
            with suppress(KafkaException):
                sink.abort_transaction(10)
            raise
        self._starts = {}
        self._next |= positions
        self._part.problem = ""

    def _again(self, source: Consumer) -> None:
        """Go back to where the last transaction ended: partitions came and went meanwhile."""
        self._accounts = OffsetAccounts(self._plan.flow.group)
        for here, offset in self._next.items():
            self._accounts.begin(here, offset)
            if here in self._past.ends:
                continue  # the archive gives it again
            with suppress(KafkaException):
                source.seek(TopicPartitionOffset(*here, offset))
        self._accounts.changed()
        self._restore()

    def _write(self, writer: Writer, messages: list[Message], written: Written) -> None:
        flow = self._plan.flow
        for topic, event in written.outputs:
            headers = event.record_headers(flow.name, self._plan.version)
            writer.write(topic, event.value, key=event.key, headers=headers)
        for at, why in written.dead.items():
            send_message_to_dead_letters(writer, messages[at], stage=flow.group, reason=why)
        for (stone, key), value in written.state.items():
            writer.write(flow_state(flow.name), value, key=f"{stone}/{key}".encode())
        delivered = {event.at for _, event in written.outputs}
        for at, one in enumerate(messages):
            self._accounts.count(place(one), one.offset() or 0, **written.fate(at, delivered))
        for account in self._accounts.changed():
            write_account(writer, account)
        writer.serve(0)


def _state_names(plan: Plan) -> set[str]:
    return {one.state_name for one in plan.stateful.values()}


def transactional(bootstrap: str, name: str, client: Mapping[str, Any] | None = None) -> Producer:
    """Return the producer of transactions *name*; who had that name before is fenced off."""
    more = {"client": client, "linger_ms": 1}
    return fenced_producer(bootstrap, name, longest_ms=TRANSACTION_TIMEOUT, patience=30, **more)


def records(messages: list[Message]) -> list[Message]:
    """Return those of *messages* that are records.

    Raises:
        KafkaException: One is an error that does not pass by itself.
    """
    for one in messages:
        error = one.error()
        if error is not None and error.code() not in {*TRANSIENT_ERRORS, KafkaError.UNKNOWN_TOPIC_OR_PART}:
            raise KafkaException(error)
    return [one for one in messages if one.error() is None]


def place(message: Message) -> TopicPartition:
    """Return topic and partition of *message*."""
    return str(message.topic()), message.partition() or 0


def accounts_of(bootstrap: str, queue: str, position: int, end: int) -> OffsetAccounts:
    """Return the accounts of who reads *queue* from *position* on; it ends at *end*.

    What they hold is not counted again, unless it lies behind the end: then it is of an older queue
    of that name, which was deleted.
    """
    counted = [one for one in read_accounts(bootstrap) if one.stage == queue]
    known = [] if any(one.last >= end for one in counted) else counted
    return OffsetAccounts(queue, known, positions={(queue, 0): position})


def go_on_in_queues(positions: GroupOffsets, known: list[TopicPartitionOffset]) -> None:
    """Move those of *known* that are queues to where any reader of them was.

    A stone's queue is read by the flow's group, a terminal's by its own: one that becomes the other
    goes on.
    """
    for one in known:
        kind, _, names = one.topic.partition(".")
        if kind != "flow":
            continue
        for group in (f"flow.{names.partition('.')[0]}", one.topic):
            found = positions.committed(group, [(one.topic, one.partition)])
            one.offset = max(one.offset, *found.values(), -1)
