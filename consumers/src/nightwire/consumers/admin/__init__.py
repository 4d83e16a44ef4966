"""What operators look at and move: topics, positions of groups, dead letters."""

from nightwire.consumers.admin.dead_letter_store import DeadLetterError, DeadLetterStore, SentBack
from nightwire.consumers.admin.dead_letters import STAGE, DeadLetter, letter_lines, letter_record

__all__ = [
    "STAGE",
    "DeadLetter",
    "DeadLetterError",
    "DeadLetterStore",
    "SentBack",
    "letter_lines",
    "letter_record",
]
