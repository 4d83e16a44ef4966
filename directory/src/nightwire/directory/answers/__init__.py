"""What is made of rows: answers in their forms, and documents that others read."""

from nightwire.directory.answers.answer import FORMS, Answer, rows_of
from nightwire.directory.answers.exports import EXPORTS
from nightwire.directory.answers.subscription import SubscribeError

__all__ = ["EXPORTS", "FORMS", "Answer", "SubscribeError", "rows_of"]
