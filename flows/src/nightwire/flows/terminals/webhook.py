"""Webhooks, Slack's among them: an event is a POST, signed, with a key by which it counts once."""

import base64
import binascii
import hmac
import html
import json
import time
from dataclasses import dataclass

from nightwire.core.outside import Refused
from nightwire.flows.terminals.http import Outside
from nightwire.flows.terminals.outgoing import EventView, Terminal, secret


@dataclass
class Webhook(Terminal):
    """Posts events as JSON.

    Attributes:
        url: Where to.
        outside: Asks it.
        secret: Signs (Standard Webhooks, ``v1``); empty for unsigned.
        template: The text of Slack's messages; empty for whole events.
    """

    url: str
    outside: Outside
    secret: str = ""
    template: str = ""

    def deliver(self, event: EventView) -> None:
        """Post *event*; what is answered does not matter, however long it is."""
        said = {"text": event.text(self.template, _slack)} if self.template else None
        body = event.body() if said is None else json.dumps(said).encode()
        self.outside.ask("POST", self.url, body, self._headers(event, body), most=0)

    def close(self) -> None:
        """Close the connections."""
        self.outside.close()

    def _headers(self, event: EventView, body: bytes) -> dict[str, str]:
        at = str(int(time.time()))
        headers = {
            "content-type": "application/json",
            "user-agent": "nightwire",
            "idempotency-key": event.identity,
            "webhook-id": event.identity,
            "webhook-timestamp": at,
        }
        if self.secret:
            headers["webhook-signature"] = signature(secret(self.secret), event.identity, at, body)
        return headers


def _slack(value: object) -> str:
    """Return a field for Slack, where ``<!channel>`` calls all and ``<URL|text>`` is a link."""
    return html.escape(str(value), quote=False)


def signature(key: str, identity: str, at: str, body: bytes) -> str:
    """Return the signature of a message, as Standard Webhooks has it.

    Args:
        key: The secret; after ``whsec_`` in base64.
        identity: The message's.
        at: When it is sent. [s since 1970]
        body: What is sent.

    Raises:
        Refused: The secret is no base64.
    """
    try:
        raw = base64.b64decode(key[6:], validate=True) if key.startswith("whsec_") else key.encode()
    except binascii.Error as error:
        raise Refused(f"the secret is no base64 after whsec_: {error}") from error
    signed = hmac.digest(raw, f"{identity}.{at}.".encode() + body, "sha256")
    return f"v1,{base64.b64encode(signed).decode()}"
