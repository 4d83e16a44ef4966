"""How a process tells the directory that it is there, serves HTTP, and asks others of the site."""

from typing import TYPE_CHECKING

from nightwire.core.presence.ask_archive import ArchiveClient
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
from nightwire.schemas.lazy import on_demand

if TYPE_CHECKING:
    from nightwire.core.presence.http_service import HttpService, request_counter

__all__ = [
    "HEARTBEAT",
    "KINDS",
    "MAX_CAPABILITIES",
    "ArchiveClient",
    "EntryError",
    "HttpService",
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
    "request_counter",
    "whom_to_trust",
    "wrong_name",
]

__getattr__ = on_demand(__name__, dict.fromkeys(("HttpService", "request_counter"), "http_service"))
