"""How a process tells the directory that it is there."""

from nightwire.core.presence.registrar import (
    MAX_CAPABILITIES,
    EntryError,
    check_entry,
    entry,
    entry_key,
    registered,
    site_name,
)

__all__ = ["MAX_CAPABILITIES", "EntryError", "check_entry", "entry", "entry_key", "registered", "site_name"]
