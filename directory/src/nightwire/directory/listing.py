"""Entries added and removed by hand: through the directory's process, else in its log."""

from typing import Any
from urllib.parse import quote

from nightwire.core.presence import NobodyAnswersError, ask_directory, entry, entry_key
from nightwire.core.runtime import Endpoints, find_endpoints, site_name
from nightwire.directory.ingest import write
from nightwire.schemas.records import ENTRY


def add(bootstrap: str | None, kind: str, name: str, **more: Any) -> None:
    """List *name* as a *kind* of this site.

    Args:
        bootstrap: Kafka's address; else that of the environment or of the running stack.
        kind: One of `nightwire.core.presence`'s kinds.
        name: Unique among its kind.
        more: ``owner``, ``survey``, ``topic``, ``endpoints``, ``capabilities``.

    Raises:
        EntryError: The entry is malformed.
        SiteHttpError: The directory refuses.
        DeliveryError: Kafka did not take it.
    """
    where, found = find_endpoints(bootstrap), entry(kind, name, **more)
    if not _sent(where, "POST", "/entries", json={"kind": kind, "name": name, **more}):
        write(where.kafka, {entry_key(found): ENTRY.encode(found)})


def remove(bootstrap: str | None, kind: str, name: str) -> None:
    """Delete *name*, a *kind* of this site.

    Raises:
        SiteHttpError: The directory refuses.
        DeliveryError: Kafka did not take it.
    """
    where = find_endpoints(bootstrap)
    if not _sent(where, "DELETE", f"/entries/{quote(kind, safe='')}/{quote(name, safe='')}"):
        write(where.kafka, {entry_key({"site": site_name(), "kind": kind, "name": name}): None})


def _sent(where: Endpoints, method: str, path: str, **more: Any) -> bool:
    """Send a request to the directory's process; return whether there is one."""
    try:
        ask_directory(where, method, path, **more)
    except NobodyAnswersError:
        return False
    return True
