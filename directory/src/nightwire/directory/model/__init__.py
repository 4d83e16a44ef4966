"""The directory's rows: who is alive, what is known of each site, and SQL over it; pure."""

from nightwire.directory.model.liveness import GONE, Holder, LogClock, next_holder
from nightwire.directory.model.site_rows import SiteRows
from nightwire.directory.model.view import QueryError, Rows, TooLongError, View

__all__ = [
    "GONE",
    "Holder",
    "LogClock",
    "QueryError",
    "Rows",
    "SiteRows",
    "TooLongError",
    "View",
    "next_holder",
]
