"""Terminals outside Kafka: at least once, with a key by which an event counts once."""

from dataclasses import dataclass
from pathlib import Path

from nightwire.core.outside import Refused, Unavailable
from nightwire.flows.model import Stone
from nightwire.flows.terminals.outgoing import BEFORE, VARIABLES, EventView, Terminal, secret, view

__all__ = [
    "BEFORE",
    "VARIABLES",
    "EventView",
    "Limits",
    "Refused",
    "Terminal",
    "Unavailable",
    "open_terminal",
    "secret",
    "view",
]


@dataclass(frozen=True)
class Limits:
    """What a worker allows to flows.

    Attributes:
        inside: Whether webhooks, TOMs and VTP brokers may be in private networks, or here.
        files: The folder of files; None for none.
    """

    inside: bool = False
    files: Path | None = None


def open_terminal(stone: Stone, limits: Limits) -> Terminal:
    """Return the terminal that *stone* describes; its option ``survey`` says whose alerts come."""
    from nightwire.flows.terminals.http import Outside
    from nightwire.flows.terminals.mail import Mail
    from nightwire.flows.terminals.webhook import Webhook

    given = stone.options
    match stone.kind:
        case "webhook":
            return Webhook(given["url"], Outside(limits.inside), given.get("secret", ""))
        case "slack":
            return Webhook(given["url"], Outside(limits.inside), template=given["text"])
        case "email":
            to = [given["to"]] if isinstance(given["to"], str) else given["to"]
            subject = given.get("subject") or Mail.subject
            return Mail(to, subject, given.get("text", ""), given.get("owner", ""))
        case "vtp":
            from nightwire.flows.terminals.vtp import Vtp

            return Vtp(given["to"], given.get("survey", ""), stone.name, limits.inside)
        case "tom":
            from nightwire.flows.terminals.tom import Tom

            return Tom(given["url"], given["token"], given["survey"], given, Outside(limits.inside))
    from nightwire.flows.terminals.stores import Lines, Rows

    if stone.kind == "file":
        return Lines(limits.files, given["path"])
    return Rows(given["database"], given["table"], limits.files)
