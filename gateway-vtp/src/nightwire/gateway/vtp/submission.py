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
        ivorn: What the broker called it.
        reason: What the broker said, or why it could not be reached.
        attempts: How often it was sent.
    """

    name: str
    verdict: str
    ivorn: str | None
    reason: str | None
    attempts: int
