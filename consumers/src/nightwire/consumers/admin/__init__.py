"""What operators look at and move: topics, positions of groups, dead letters."""

from nightwire.consumers.admin.dead_letter_store import DeadLetterStore
from nightwire.consumers.admin.dead_letters import STAGE, DeadLetter, letter_lines, letter_record

__all__ = ["STAGE", "DeadLetter", "DeadLetterStore", "letter_lines", "letter_record"]
