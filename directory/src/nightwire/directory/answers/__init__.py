"""Answers in their formats, and exported documents."""

from nightwire.directory.answers.answer import FORMATS, Answer, rows_of
from nightwire.directory.answers.exports import EXPORTS
from nightwire.directory.answers.subscription import SubscribeError

__all__ = ["EXPORTS", "FORMATS", "Answer", "SubscribeError", "rows_of"]
