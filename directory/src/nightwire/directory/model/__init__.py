"""The directory's rows: liveness of processes, the rows of each site, SQL over them; pure."""

from nightwire.directory.model.columns import COLUMNS, Column
from nightwire.directory.model.liveness import GONE, Holder, LogClock, next_holder
from nightwire.directory.model.registry_views import EVENTS, REGISTRY_TABLES, ivoid
from nightwire.directory.model.site_rows import MemberRow, SiteRows
from nightwire.directory.model.view import QueryError, QueryTimeoutError, Rows, View

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
    "QueryTimeoutError",
    "Rows",
    "SiteRows",
    "View",
    "ivoid",
    "next_holder",
]
