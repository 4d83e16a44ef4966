"""What is made of rows: answers in their forms, and documents that others read."""

from nightwire.directory.answers.answer import FORMS, Answer, rows_of

__all__ = ["FORMS", "Answer", "rows_of"]
