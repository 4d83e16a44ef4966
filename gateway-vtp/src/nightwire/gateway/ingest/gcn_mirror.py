"""From GCN's Kafka into ours: each of its VOEvents once, and where it was read up to."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from confluent_kafka import KafkaException, Message

from nightwire.core.accounting import Account, send_message_to_dead_letters
from nightwire.core.kafka import Writer
from nightwire.gateway.eventlog.accounts import AccountWriter
from nightwire.gateway.eventlog.deduplicator import RETRY_DELAY, Deduplicator, retry_while_unavailable
from nightwire.gateway.ingest.gcn import DEAD, DELIVERED, DUPLICATE, STAGE, GcnOffsets
from nightwire.gateway.ingest.gcn_source import GcnSource
from nightwire.gateway.ingest.settings import GcnSettings
from nightwire.gateway.status.metrics import GatewayMetrics
from nightwire.gateway.voevent.validation import InvalidEventError, broker_packet

log = logging.getLogger(__name__)

WHAT = "what GCN sent"
_OUTCOMES = {DELIVERED: "accepted", DUPLICATE: "duplicate", DEAD: "invalid"}  # as they are called in metrics


class GcnMirror:
    """Take GCN's VOEvents into the log.

    A record is accounted for once it is in our Kafka, as an event or as a dead letter, so that a kill at any
    moment leaves it to be read again.

    Args:
        settings: What is wanted of GCN.
        accounts: What earlier runs wrote.
        admission: The way into the log.
        book: Where accounts go.
        metrics: The process's metrics.
        make_writer: Returns a writer for dead letters; asked again after one failed.
    """

    def __init__(
        self,
        settings: GcnSettings,
        accounts: Iterable[Account],
        admission: Deduplicator,
        book: AccountWriter,
        metrics: GatewayMetrics,
        make_writer: Callable[[], Writer],
    ) -> None:
        self._ledger = GcnOffsets(accounts)
        self._settings, self._admission, self._book, self._metrics = settings, admission, book, metrics
        self._make_writer = make_writer
        self._writer: Writer | None = None
        self._reading = ThreadPoolExecutor(1, thread_name_prefix="gcn")

    async def follow(self) -> None:
        """Read GCN's topics, for ever."""
        while True:
            try:
                await self._once()
            except KafkaException as error:
                log.error("GCN's Kafka at %s: %s", self._settings.bootstrap, error.args[0].str())  # noqa: TRY400
                await asyncio.sleep(RETRY_DELAY)

    async def _once(self) -> None:
        """Read until GCN's Kafka refuses us.

        Raises:
            KafkaException: It did.
        """
        loop = asyncio.get_running_loop()
        source = GcnSource(self._settings, self._ledger)
        try:
            while True:
                messages = await loop.run_in_executor(self._reading, source.take)
                outcomes = await asyncio.gather(*map(self._outcome, messages))
                for message, outcome in zip(messages, outcomes, strict=True):
                    self._note(source, message, outcome)
                await self._account()
                self._metrics.gcn_behind.set(source.behind())
        finally:
            self._reading.submit(source.close)

    async def _account(self) -> None:
        """Account for what was read, before more is: so a start that comes next knows that there was one."""
        posted = [asyncio.wrap_future(self._book.post(account)) for account in self._ledger.changed()]
        await asyncio.gather(*posted)

    def _note(self, source: GcnSource, message: Message, outcome: str) -> None:
        self._metrics.received.labels(STAGE, _OUTCOMES[outcome]).inc()
        self._ledger.note(source.spot(message), message.offset() or 0, outcome)

    async def _outcome(self, message: Message) -> str:
        """Return what became of *message*, once Kafka has it."""
        try:
            packet = broker_packet(message.value() or b"")
        except InvalidEventError as error:
            await retry_while_unavailable(partial(self._bury, message, str(error)), WHAT)
            return DEAD
        new = await retry_while_unavailable(
            partial(self._admission.admit, packet, f"gcn:{message.topic()}"), WHAT
        )
        return DELIVERED if new else DUPLICATE

    async def _bury(self, message: Message, reason: str) -> bool:
        place = f"{message.topic()}[{message.partition()}]@{message.offset()}"
        log.warning("%s of GCN is no event: %s", place, reason)
        await asyncio.get_running_loop().run_in_executor(self._reading, self._bury_now, message, reason)
        self._metrics.dead_lettered.labels(STAGE).inc()
        return True

    def _bury_now(self, message: Message, reason: str) -> None:
        self._writer, writer = None, self._writer or self._make_writer()  # one that fails is not used again
        send_message_to_dead_letters(writer, message, stage=STAGE, reason=reason, cluster="gcn")
        writer.flush()
        self._writer = writer
