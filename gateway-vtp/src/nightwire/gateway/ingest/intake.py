"""The way into the log for the events of one kind of peer, and the counts of the rejected."""

import asyncio
from dataclasses import dataclass

from nightwire.gateway.eventlog.accounts import AccountWriter, RejectionCounter
from nightwire.gateway.eventlog.deduplicator import Deduplicator
from nightwire.gateway.net.memory import MemoryBudget
from nightwire.gateway.signing.requirements import SignatureRequirement
from nightwire.gateway.status.metrics import GatewayMetrics
from nightwire.gateway.voevent.validation import InvalidEventError


@dataclass(frozen=True)
class EventIntake:
    """Where the events of one kind of peer go.

    Attributes:
        source: The kind of peer as metrics name it: author, broker.
        deduplicator: Writes each event once.
        requirement: What events have to prove by signatures.
        accounts: Writes accounts to Kafka.
        rejections: Counts the events that are rejected.
        metrics: The process's metrics.
        memory: Bounds the memory for their messages.
    """

    source: str
    deduplicator: Deduplicator
    requirement: SignatureRequirement
    accounts: AccountWriter
    rejections: RejectionCounter
    metrics: GatewayMetrics
    memory: MemoryBudget

    def reject(self, reason: str) -> asyncio.Future[None]:
        """Account for one rejected event; the future is done once Kafka has the account."""
        return asyncio.wrap_future(self.accounts.post(self.rejections.reject(reason)))

    def count(self, outcome: str) -> None:
        """Count what became of one event."""
        self.metrics.received.labels(self.source, outcome).inc()

    def count_unread(self, error: InvalidEventError) -> None:
        """Count a document that was not even read, if *error* is about one."""
        if error.kind is not None:
            self.metrics.documents_refused.labels(self.source, error.kind.value).inc()

    def count_dropped(self, reason: str) -> None:
        """Count a connection that we ended."""
        self.metrics.dropped.labels(self.source, reason).inc()
