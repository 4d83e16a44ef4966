"""The thread that runs a part of a flow: consume, process and produce, by Kafka's transactions.

Positions, events, accounts and state of a batch are committed as one, so a process that is killed
loses and doubles nothing.  Between two batches a new plan may replace the current one.
"""

from collections.abc import Callable
from contextlib import closing, suppress
from datetime import UTC, datetime

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.consumers.source import milliseconds, parse_since
from nightwire.core.accounting import (
    OffsetAccounts,
    send_message_to_dead_letters,
    write_account,
)
from nightwire.core.kafka import (
    GroupOffsets,
    TopicPartition,
    Writer,
    consumer,
    error_code,
    login,
    read_to_end,
    retry_while_unavailable,
)
from nightwire.core.presence import ArchiveClient
from nightwire.flows.engine.archive_backfill import EXPIRED, ArchivedRecords
from nightwire.flows.engine.keyed_state import record_key, states_in
from nightwire.flows.engine.plan import BatchResult, Plan
from nightwire.flows.engine.queue_reading import (
    BATCH,
    POLL,
    partition_of,
    resume_queues,
    transactional_producer,
    without_errors,
)
from nightwire.flows.model import ENDS
from nightwire.flows.restarting_thread import RestartingThread
from nightwire.schemas.topics import flow_state

HEARTBEAT = 100
"""Time between heartbeats, and so until others notice a rebalance. [ms]"""

REBALANCING = frozenset(
    {KafkaError.ILLEGAL_GENERATION, KafkaError.REBALANCE_IN_PROGRESS, KafkaError.UNKNOWN_MEMBER_ID}
)
"""Errors of a commit during a rebalance."""


class PartRunner(RestartingThread):
    """The thread of one part of a flow; the part's current plan is its attribute `plan`.

    Args:
        bootstrap: Kafka's address.
        worker: Name of the worker.
        plan: The first plan.
        takeover: Session timeout: so long after a crash another worker goes on. [s]
        archive: URL of the archive; None for none.
    """

    def __init__(
        self, bootstrap: str, worker: str, plan: Plan, takeover: float, archive: str | None = None
    ) -> None:
        super().__init__(f"flow-{plan.flow.name}-{plan.worker}")
        self.bootstrap, self.plan, self.takeover, self._archive = bootstrap, plan, takeover, archive
        self.transactional_id = f"flow-{plan.flow.name}-{plan.worker}-{worker}"

    def session(self, reset_backoff: Callable[[], None]) -> None:
        """Run transactions until `leaving` is set."""
        client = ArchiveClient(self._archive, login(self.bootstrap)) if self._archive else None
        with closing(ArchivedRecords(client)) as archived:
            PartSession(self, archived).run(reset_backoff)


class PartSession:
    """A consumer and a transactional producer, made anew together after an error.

    Args:
        part: The part, whose plan may change.
        archived: Reads records that Kafka has deleted.
    """

    def __init__(self, part: PartRunner, archived: ArchivedRecords) -> None:
        self._part, self._bootstrap, self._archived = part, part.bootstrap, archived
        self._group_offsets = GroupOffsets(part.bootstrap)
        self._plan = part.plan
        self._accounts = OffsetAccounts(self._plan.flow.group)
        self._initial: dict[TopicPartition, int] = {}
        self._positions: dict[TopicPartition, int] = {}
        self._joined = False

    def run(self, reset_backoff: Callable[[], None]) -> None:
        """Work until the part is to leave; call *reset_backoff* after each transaction."""
        source = consumer(
            self._bootstrap,
            group=self._plan.flow.group,
            auto_offset_reset="earliest",
            session_timeout_ms=int(self._part.takeover * 1000),
            heartbeat_interval_ms=HEARTBEAT,
            partition_assignment_strategy="range",
        )
        try:
            self._subscribe(source)
            sink = transactional_producer(
                self._bootstrap, self._part.transactional_id
            )  # the group forms meanwhile
            while not self._part.leaving.is_set():
                self._follow_plan(source)
                messages = self._batch(source)
                if messages or self._initial:
                    self._transact(source, sink, messages)
                    reset_backoff()
                elif self._joined:
                    self._part.problem = ""  # nothing waits for it here
        finally:
            self._group_offsets.keep(())
            source.close()

    def _follow_plan(self, source: Consumer) -> None:
        """Take the newest plan; its stones take over the state of the older ones."""
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
        """Begin at the committed offsets; new partitions as their source says, with a commit."""
        known = retry_while_unavailable(lambda: source.committed(partitions, timeout=15), patience=20)
        resume_queues(self._group_offsets, known)
        for one in known:
            if one.offset < 0:
                one.offset = self._start(source, one)
                self._initial[one.topic, one.partition] = one.offset
            self._positions[one.topic, one.partition] = one.offset
            self._accounts.begin((one.topic, one.partition), one.offset)
        self._accounts.changed()
        self._restore()
        for one in known:
            one.offset = self._archived.next_offset(source, one)
        source.assign(known)
        source.pause([one for one in known if (one.topic, one.partition) in self._archived.ends])
        self._joined = True

    def _revoked(self, source: Consumer, partitions: list[TopicPartitionOffset]) -> None:
        """Give up *partitions*, of which all that was read is committed."""
        for one in partitions:
            self._positions.pop((one.topic, one.partition), None)
            self._initial.pop((one.topic, one.partition), None)
            self._archived.ends.pop((one.topic, one.partition), None)
        source.unassign()

    def _batch(self, source: Consumer) -> list[Message]:
        """Return the next records; partitions may be revoked within, the archive's too."""
        archived = self._archived_batch(source)
        return self._ours(source, archived + without_errors(source.consume(BATCH, 0.0 if archived else POLL)))

    def _archived_batch(self, source: Consumer) -> list[Message]:
        """Return the next records of the archive; resume a partition in Kafka after the last."""
        for here, end in [*self._archived.ends.items()]:
            if here[0] not in self._plan.topics:
                continue
            found, after = self._archived.records(here, range(self._positions[here], end))
            if after < end or self._archived.next_offset(source, TopicPartitionOffset(*here, end)) > end:
                return found  # there is more: Kafka may have deleted it meanwhile
            del self._archived.ends[here]
            if not found and self._positions[here] < end:
                missing = end - self._positions[here]
                self._accounts.count(here, end - 1, missing, rejected={EXPIRED: missing})
                self._positions[here] = self._initial[here] = end
            source.resume([TopicPartitionOffset(*here)])
            if found:
                return found
        return []

    def _ours(self, source: Consumer, messages: list[Message]) -> list[Message]:
        """Return the records of assigned partitions behind their positions.

        Records of a topic that the plan does not read are sought back to: the next plan may.
        """
        found: list[Message] = []
        for one in messages:
            here, offset = partition_of(one), one.offset() or 0
            if offset < self._positions.get(here, offset + 1):
                continue
            if here[0] in self._plan.topics:
                found.append(one)
            else:
                with suppress(KafkaException):
                    source.seek(TopicPartitionOffset(*here, self._positions[here]))
        return found

    def _start(self, source: Consumer, one: TopicPartitionOffset) -> int:
        low, high = source.get_watermark_offsets(one, timeout=10)
        node = self._plan.flow.sources.get(self._plan.topics.get(one.topic, ""))
        begin = "start" if node is None else node.begin
        if begin in ENDS:
            return int(high if begin == "end" else low)
        time_ms = milliseconds(parse_since(begin), datetime.now(UTC))
        first = self._archived.first_offset_since(source, one, time_ms)
        return int(high if first is None else first)

    def _restore(self) -> None:
        """Read the stones' state from Kafka: until now another worker may have written it."""
        stateful = self._plan.stateful
        if not stateful:
            return
        messages = read_to_end(self._bootstrap, [flow_state(self._plan.flow.name)], settled=True)
        state = states_in(messages, _state_names(self._plan))
        for runner in stateful.values():
            runner.restore(state[runner.state_name])

    def _transact(self, source: Consumer, sink: Producer, messages: list[Message]) -> None:
        """Process *messages*; write events, accounts, state and positions in one transaction."""
        sink.begin_transaction()
        positions = {partition_of(one): (one.offset() or 0) + 1 for one in messages}
        offsets = [TopicPartitionOffset(*one, end) for one, end in {**self._initial, **positions}.items()]
        try:
            self._write(Writer(sink), messages, self._plan.run(messages))
            sink.send_offsets_to_transaction(offsets, source.consumer_group_metadata())
            sink.commit_transaction()
        except KafkaException as error:
            sink.abort_transaction(10)
            if error_code(error) not in REBALANCING:
                raise
            self._rewind(source)
            return
        except BaseException:
            with suppress(KafkaException):
                sink.abort_transaction(10)
            raise
        self._initial = {}
        self._positions |= positions
        self._part.problem = ""

    def _rewind(self, source: Consumer) -> None:
        """Seek to the end of the last transaction, and drop what was counted since."""
        self._accounts = OffsetAccounts(self._plan.flow.group)
        for here, offset in self._positions.items():
            self._accounts.begin(here, offset)
            if here in self._archived.ends:
                continue  # the archive gives it again
            with suppress(KafkaException):
                source.seek(TopicPartitionOffset(*here, offset))
        self._accounts.changed()
        self._restore()

    def _write(self, writer: Writer, messages: list[Message], result: BatchResult) -> None:
        flow = self._plan.flow
        for topic, event in result.outputs:
            headers = event.record_headers(flow.name, self._plan.version)
            writer.write(topic, event.value, key=event.key, headers=headers)
        for index, why in result.dead_letters.items():
            send_message_to_dead_letters(writer, messages[index], stage=flow.group, reason=why)
        for (state_name, key), value in result.state.items():
            writer.write(flow_state(flow.name), value, key=record_key(state_name, key))
        delivered = {event.index for _, event in result.outputs}
        for index, one in enumerate(messages):
            self._accounts.count(partition_of(one), one.offset() or 0, **result.fate(index, delivered))
        for account in self._accounts.changed():
            write_account(writer, account)
        writer.serve(0)


def _state_names(plan: Plan) -> set[str]:
    return {one.state_name for one in plan.stateful.values()}
