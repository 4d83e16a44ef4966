"""What peers have to prove by signatures, where that is required of them."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from nightwire.gateway.signing.trust import Trust
from nightwire.gateway.signing.trust_policy import Signer
from nightwire.gateway.signing.verification import Finding
from nightwire.gateway.status.metrics import GatewayMetrics
from nightwire.gateway.voevent.packet import Packet


class NotAdmittedError(Exception):
    """A subscriber did not prove who it is; the message says what was wrong."""


class SignatureRequirement:
    """Events of one kind of peer have to be signed, or do not.

    Args:
        role: The kind of peer: author, broker.
        trust: Verifies signatures; None where none are required.
        metrics: The process's metrics.
    """

    def __init__(self, role: str, trust: Trust | None, metrics: GatewayMetrics) -> None:
        self._role, self._trust, self._metrics = role, trust, metrics

    def refusal(self, packet: Packet) -> str | None:
        """Return why *packet* is not to be believed, or None."""
        if self._trust is None:
            return None
        verdict = self._trust.judge_event(packet)
        self._metrics.signatures.labels(self._role, verdict.finding.value).inc()
        return None if verdict.finding is Finding.GOOD else verdict.reason


class SubscriberGate:
    """Whether a subscriber is let in: at once, or after a signed answer to our greeting.

    Args:
        broker: IVOID that greeted.
        trust: Verifies signatures; None where everybody is let in.
        metrics: The process's metrics.

    Attributes:
        signer: Who signed the answer that opened it.
    """

    def __init__(self, broker: str, trust: Trust | None, metrics: GatewayMetrics) -> None:
        self._broker, self._trust, self._metrics = broker, trust, metrics
        self._open = asyncio.Event()
        self.signer: Signer | None = None
        if trust is None:
            self._open.set()

    def verify(self, document: bytes) -> None:
        """Verify an answer to the greeting, and open the gate.

        Raises:
            NotAdmittedError: It proves nothing.
        """
        if self._trust is None or self._open.is_set():
            return
        verdict = self._trust.judge_answer(document, self._broker)
        self._metrics.signatures.labels("subscriber", verdict.finding.value).inc()
        if verdict.finding is not Finding.GOOD:
            raise NotAdmittedError(f"your answer to authenticate: {verdict.reason}")
        self.signer = verdict.signer
        self._open.set()

    @property
    def is_open(self) -> bool:
        """Say whether the subscriber is let in."""
        return self._open.is_set()

    async def opened(self, timeout: float) -> None:
        """Wait until it is open, at most *timeout* [s].

        Raises:
            NotAdmittedError: The peer has not answered by then.
        """
        try:
            async with asyncio.timeout(timeout):
                await self._open.wait()
        except TimeoutError:
            self._metrics.signatures.labels("subscriber", Finding.MISSING.value).inc()
            raise NotAdmittedError(f"no signed answer to authenticate within {timeout:g} s") from None


@dataclass(frozen=True)
class SignatureSettings:
    """Of whom signatures are required, and the keys.

    Attributes:
        required: Of whom they are required: authors, brokers, subscribers.
        keyring: Folder of the keys that are known; there where anything is required.
        policy: Table of who may sign for whom.
        key: File of our own secret key, which signs our answers to brokers.
        answer_timeout: Longest time that a subscriber may take over its answer. [s]
    """

    required: tuple[str, ...] = ()
    keyring: Path | None = None
    policy: Path | None = None
    key: Path | None = None
    answer_timeout: float = 20.0
