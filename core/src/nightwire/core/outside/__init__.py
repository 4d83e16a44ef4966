"""Requests to those outside the site: where they may go, how long they take, what answers mean."""

from nightwire.core.outside.address import PinnedUrl, Refused, Unavailable, judged, may_be_mailed, pinned
from nightwire.core.outside.http import MAX_ANSWER, TIMEOUT, Outside

__all__ = [
    "MAX_ANSWER",
    "TIMEOUT",
    "Outside",
    "PinnedUrl",
    "Refused",
    "Unavailable",
    "judged",
    "may_be_mailed",
    "pinned",
]
