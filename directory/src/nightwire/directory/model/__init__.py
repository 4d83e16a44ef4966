"""The directory's rows: who is alive, what is known of each site, and SQL over it; pure."""

from nightwire.directory.model.columns import COLUMNS, Column
from nightwire.directory.model.liveness import GONE, Holder, LogClock, next_holder
from nightwire.directory.model.registry_views import EVENTS, REGISTRY_TABLES, ivoid
from nightwire.directory.model.site_rows import MemberRow, SiteRows
from nightwire.directory.model.view import QueryError, Rows, TooLongError, View

__all__ = [
    "COLUMNS",
    "EVENTS",
    "GONE",
    "REGISTRY_TABLES",
    "Column",
    "Holder",
    "LogClock",
    "MemberRow",
    "QueryError",
    "Rows",
    "SiteRows",
    "TooLongError",
    "View",
    "ivoid",
    "next_holder",
]
