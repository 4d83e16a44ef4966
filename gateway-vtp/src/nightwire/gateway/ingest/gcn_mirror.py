"""From GCN's Kafka into ours: each of its VOEvents once, and up to where it was read."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from confluent_kafka import KafkaException, Message

from nightwire.core.accounting import Account, OffsetAccounts, send_message_to_dead_letters
from nightwire.core.kafka import Writer, error_text
from nightwire.gateway.eventlog.accounts import AccountWriter
from nightwire.gateway.eventlog.deduplicator import RETRY_DELAY, Deduplicator, retry_until_written
from nightwire.gateway.ingest.gcn import DEAD_LETTERED, DELIVERED, DUPLICATE, STAGE, count_outcome
from nightwire.gateway.ingest.gcn_source import GcnSource
from nightwire.gateway.ingest.settings import GcnSettings
from nightwire.gateway.status.metrics import GatewayMetrics
from nightwire.gateway.voevent.validation import InvalidEventError, broker_packet

log = logging.getLogger(__name__)

_METRIC_OUTCOMES = {DELIVERED: "accepted", DUPLICATE: "duplicate", DEAD_LETTERED: "invalid"}


class GcnMirror:
    """Take GCN's VOEvents into the log.

    A record is accounted for once it is in our Kafka, as an event or as a dead letter, so that
    after a kill at any moment it is read again.

    Args:
        settings: What is wanted of GCN.
        accounts: Accounts of earlier runs.
        deduplicator: Writes each event once.
        account_writer: Writes accounts to Kafka.
        metrics: The process's metrics.
        make_writer: Returns a writer for dead letters; asked again after one failed.
    """

    def __init__(
        self,
        settings: GcnSettings,
        accounts: Iterable[Account],
        deduplicator: Deduplicator,
        account_writer: AccountWriter,
        metrics: GatewayMetrics,
        make_writer: Callable[[], Writer],
    ) -> None:
        self._accounts = OffsetAccounts(STAGE, accounts)
        self._settings, self._deduplicator, self._metrics = settings, deduplicator, metrics
        self._account_writer, self._make_writer = account_writer, make_writer
        self._writer: Writer | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="gcn")

    async def follow(self) -> None:
        """Read GCN's topics, for ever."""
        while True:
            try:
                await self._read()
            except KafkaException as error:
                message = error_text(error)
                log.error("GCN's Kafka at %s: %s", self._settings.bootstrap, message)  # noqa: TRY400
                await asyncio.sleep(RETRY_DELAY)

    async def _read(self) -> None:
        """Read until GCN's Kafka refuses us.

        Raises:
            KafkaException: It did.
        """
        loop = asyncio.get_running_loop()
        source = GcnSource(self._settings, self._accounts)
        try:
            while True:
                messages = await loop.run_in_executor(self._thread, source.take)
                outcomes = await asyncio.gather(*map(self._outcome, messages))
                for message, outcome in zip(messages, outcomes, strict=True):
                    self._count(source, message, outcome)
                await self._write_accounts()
                self._metrics.gcn_behind.set(source.behind())
        finally:
            self._thread.submit(source.close)

    async def _write_accounts(self) -> None:
        """Account for the records before more are read: the next start knows of this one."""
        changed = self._accounts.changed()
        await asyncio.gather(*(asyncio.wrap_future(self._account_writer.post(one)) for one in changed))

    def _count(self, source: GcnSource, message: Message, outcome: str) -> None:
        self._metrics.received.labels(STAGE, _METRIC_OUTCOMES[outcome]).inc()
        count_outcome(self._accounts, source.name(message), message.offset() or 0, outcome)

    async def _outcome(self, message: Message) -> str:
        """Return what became of *message*, once our Kafka has it."""
        record = f"{message.topic()}[{message.partition()}]@{message.offset()} of GCN"
        try:
            packet = broker_packet(message.value() or b"")
        except InvalidEventError as error:
            log.warning("%s is no event: %s", record, error)
            await retry_until_written(partial(self._send_to_dead_letters, message, str(error)), record)
            return DEAD_LETTERED
        admit = partial(self._deduplicator.admit, packet, f"gcn:{message.topic()}")
        return DELIVERED if await retry_until_written(admit, record) else DUPLICATE

    async def _send_to_dead_letters(self, message: Message, reason: str) -> bool:
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._thread, self._write_dead_letter, message, reason)
        self._metrics.dead_lettered.labels(STAGE).inc()
        return True

    def _write_dead_letter(self, message: Message, reason: str) -> None:
        # not again after a failure
        self._writer, writer = None, self._writer or self._make_writer()
        send_message_to_dead_letters(writer, message, stage=STAGE, reason=reason, cluster="gcn")
        writer.flush()
        self._writer = writer
