"""Questions to the archive, and the forms of the answers."""

from nightwire.archive.asking.archive import CHOSEN, Archive, columns_in
from nightwire.archive.asking.engine import QuestionError
from nightwire.archive.asking.forms import FORMS, containers, flat, votable_error
from nightwire.archive.asking.questions import BusyError

__all__ = [
    "CHOSEN",
    "FORMS",
    "Archive",
    "BusyError",
    "QuestionError",
    "columns_in",
    "containers",
    "flat",
    "votable_error",
]
