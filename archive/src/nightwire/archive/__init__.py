"""Every survey's past alerts in Delta tables: by id, object, position, and SQL."""

from typing import TYPE_CHECKING

from nightwire.schemas.lazy import on_demand

if TYPE_CHECKING:
    from nightwire.archive.asking.archive import Archive
    from nightwire.archive.asking.engine import QuestionError
    from nightwire.archive.storage import ArchiveError, WholeRecord

__all__ = ["Archive", "ArchiveError", "QuestionError", "WholeRecord"]

__getattr__ = on_demand(
    __name__,
    {
        "Archive": "asking.archive",
        "ArchiveError": "storage",
        "QuestionError": "asking.engine",
        "WholeRecord": "storage",
    },
)
