"""A document that an author sends, and the receipt of it."""

from dataclasses import dataclass

ACKED, NAKED, FAILED = "ack", "nak", "failed"
MAX_REPLY = 1 << 20
"""Longest answer that an author reads. [byte]"""


@dataclass(frozen=True)
class Submission:
    """One document to be sent, and where it came from."""

    name: str
    document: bytes


@dataclass(frozen=True)
class Receipt:
    """What became of one document.

    Attributes:
        name: Where it came from.
        verdict: ack, nak or failed.
        ivorn: Identifier in the broker's answer.
        reason: Result in the broker's answer, or why there is none.
        attempts: How often it was sent.
    """

    name: str
    verdict: str
    ivorn: str | None
    reason: str | None
    attempts: int
