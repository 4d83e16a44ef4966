"""Terminals outside Kafka: at least once, with a key by which an event counts once."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from nightwire.core.outside import Refused, Unavailable
from nightwire.flows.model import Stone
from nightwire.flows.terminals.terminal import (
    ENV_PREFIX,
    VARIABLE_PREFIX,
    EventView,
    Rejected,
    Terminal,
    secret,
)

__all__ = [
    "ENV_PREFIX",
    "VARIABLE_PREFIX",
    "EventView",
    "Refused",
    "Rejected",
    "Terminal",
    "TerminalLimits",
    "Unavailable",
    "open_terminal",
    "secret",
]


@dataclass(frozen=True)
class TerminalLimits:
    """What terminals of a worker may reach.

    Attributes:
        allow_private: Whether HTTP and VTP may lead into private networks and to this machine.
        files: Folder of files and SQLite databases; None for none.
    """

    allow_private: bool = False
    files: Path | None = None


def open_terminal(stone: Stone, limits: TerminalLimits) -> Terminal:
    """Return the terminal of *stone*, whose option ``survey`` is that of the alerts."""
    from nightwire.flows.terminals.http import HttpClient
    from nightwire.flows.terminals.mail import Mail
    from nightwire.flows.terminals.webhook import Webhook

    given, http = stone.options, partial(HttpClient, allow_private=limits.allow_private)
    match stone.kind:
        case "webhook":
            return Webhook(given["url"], http(), given.get("secret", ""))
        case "slack":
            return Webhook(given["url"], http(), template=given["text"])
        case "email":
            to = [given["to"]] if isinstance(given["to"], str) else given["to"]
            subject = given.get("subject") or Mail.subject
            return Mail(to, subject, given.get("text", ""), given.get("owner", ""))
        case "vtp":
            from nightwire.flows.terminals.vtp import Vtp

            return Vtp(given["to"], given.get("survey", ""), stone.name, limits.allow_private)
        case "tom":
            from nightwire.flows.terminals.tom import MENDABLE_ANSWERS, TIMEOUT, Tom

            client = http(timeout=TIMEOUT, again=MENDABLE_ANSWERS)
            return Tom(given["url"], given["token"], given["survey"], given, client)
    from nightwire.flows.terminals.stores import DatabaseTable, JsonLinesFile

    if stone.kind == "file":
        return JsonLinesFile(limits.files, given["path"])
    return DatabaseTable(given["database"], given["table"], limits.files)
