"""The verbs `nightwire filter …`, and what they ask: the portal asks the same."""

from typing import TYPE_CHECKING

from nightwire.schemas.lazy import on_demand

if TYPE_CHECKING:
    from nightwire.filters.cli.comments import (
        Comment,
        CommentError,
        read_comments,
        take_back,
        write_comment,
    )
    from nightwire.filters.cli.notify import check_url, doubt, notify_owner
    from nightwire.filters.cli.queries import (
        filter_log,
        last_notices,
        listed_filters,
        past_again,
        read_filters,
        shown_version,
        version_lines,
    )
    from nightwire.filters.cli.summaries import summary_lines, summary_of, take_snapshot
    from nightwire.filters.cli.tables import listed_json

__all__ = [
    "Comment",
    "CommentError",
    "check_url",
    "doubt",
    "filter_log",
    "last_notices",
    "listed_filters",
    "listed_json",
    "notify_owner",
    "past_again",
    "read_comments",
    "read_filters",
    "shown_version",
    "summary_lines",
    "summary_of",
    "take_back",
    "take_snapshot",
    "version_lines",
    "write_comment",
]

__getattr__ = on_demand(__name__)
