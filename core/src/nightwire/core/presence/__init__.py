"""How a process tells the directory that it is there."""

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
    registered,
    site_name,
)

__all__ = [
    "HEARTBEAT",
    "KINDS",
    "MAX_CAPABILITIES",
    "EntryError",
    "Presence",
    "check_entry",
    "entry",
    "entry_key",
    "metrics_at",
    "registered",
    "site_name",
]
