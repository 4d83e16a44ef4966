"""Webhooks, Slack's among them: an event is a POST, signed, with a key by which it counts once."""

import base64
import binascii
import hmac
import html
import json
import time
from dataclasses import dataclass

from nightwire.core.outside import Refused
from nightwire.flows.terminals.http import HttpClient
from nightwire.flows.terminals.terminal import EventView, Terminal, secret


@dataclass
class Webhook(Terminal):
    """Posts events as JSON.

    Attributes:
        url: URL, or the variable that holds it.
        client: The HTTP client.
        secret: Key of signatures (Standard Webhooks, ``v1``); empty for none.
        template: Template of Slack's text; empty for whole events.
    """

    url: str
    client: HttpClient
    secret: str = ""
    template: str = ""

    def deliver(self, event: EventView) -> None:
        """Post *event*; the answer's body is not read."""
        slack = {"text": event.text(self.template, _escape_slack)} if self.template else None
        body = event.body() if slack is None else json.dumps(slack).encode()
        self.client.ask("POST", self.url, body, self._headers(event, body), most=0)

    def close(self) -> None:
        """Close the connections."""
        self.client.close()

    def _headers(self, event: EventView, body: bytes) -> dict[str, str]:
        timestamp = str(int(time.time()))
        headers = {
            "content-type": "application/json",
            "user-agent": "nightwire",
            "idempotency-key": event.identity,
            "webhook-id": event.identity,
            "webhook-timestamp": timestamp,
        }
        if self.secret:
            headers["webhook-signature"] = signature(secret(self.secret), event.identity, timestamp, body)
        return headers


def _escape_slack(value: object) -> str:
    """Escape a field for Slack, where ``<!channel>`` calls all and ``<URL|text>`` is a link."""
    return html.escape(str(value), quote=False)


def signature(key: str, identity: str, timestamp: str, body: bytes) -> str:
    """Return the signature of a message, as Standard Webhooks has it.

    Args:
        key: The secret; after ``whsec_`` in base64.
        identity: Id of the message.
        timestamp: Time of the message. [s since 1970]
        body: Body of the message.

    Raises:
        Refused: The secret is no base64.
    """
    try:
        raw = base64.b64decode(key[6:], validate=True) if key.startswith("whsec_") else key.encode()
    except binascii.Error as error:
        raise Refused(f"the secret is no base64 after whsec_: {error}") from error
    signed = hmac.digest(raw, f"{identity}.{timestamp}.".encode() + body, "sha256")
    return f"v1,{base64.b64encode(signed).decode()}"
