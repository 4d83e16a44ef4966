"""How a process tells the directory that it is there, and asks others of the site."""

from nightwire.core.presence.ask_directory import ask_directory, home_header, home_of
from nightwire.core.presence.registrar import (
    HEARTBEAT,
    KINDS,
    MAX_CAPABILITIES,
    EntryError,
    Presence,
    check_entry,
    entry,
    entry_key,
    metrics_at,
    reached_at,
    registered,
    wrong_name,
)
from nightwire.core.presence.site_http import (
    NobodyAnswersError,
    SiteHttpError,
    message_of,
    request,
    whom_to_trust,
)

__all__ = [
    "HEARTBEAT",
    "KINDS",
    "MAX_CAPABILITIES",
    "EntryError",
    "NobodyAnswersError",
    "Presence",
    "SiteHttpError",
    "ask_directory",
    "check_entry",
    "entry",
    "entry_key",
    "home_header",
    "home_of",
    "message_of",
    "metrics_at",
    "reached_at",
    "registered",
    "request",
    "whom_to_trust",
    "wrong_name",
]
