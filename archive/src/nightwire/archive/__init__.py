"""Every survey's past alerts in Delta tables: by id, object, position, and SQL."""

from typing import TYPE_CHECKING

from nightwire.schemas.lazy import on_demand

if TYPE_CHECKING:
    from nightwire.archive.querying.archive import Archive
    from nightwire.archive.querying.sql_engine import QueryError
    from nightwire.archive.storage import ArchiveError, Packet

__all__ = ["Archive", "ArchiveError", "Packet", "QueryError"]

__getattr__ = on_demand(__name__)
