"""Requests to those outside the site: where they may go, how long they take, what answers mean."""

from nightwire.core.outside.http import AGAIN, MAX_ANSWER, TIMEOUT, OutboundClient
from nightwire.core.outside.mail import MAIL_ADDRESS, may_be_mailed
from nightwire.core.outside.ssrf import PinnedUrl, Refused, Unavailable, pin_url, resolve_public

__all__ = [
    "AGAIN",
    "MAIL_ADDRESS",
    "MAX_ANSWER",
    "TIMEOUT",
    "OutboundClient",
    "PinnedUrl",
    "Refused",
    "Unavailable",
    "may_be_mailed",
    "pin_url",
    "resolve_public",
]
