"""Webhooks, Slack's among them: an event is a POST, signed, with a key by which it counts once."""

import base64
import binascii
import hmac
import html
import json
import time
from dataclasses import dataclass, field

import httpx

from nightwire.flows.terminals.address import PinnedUrl, pinned
from nightwire.flows.terminals.outgoing import BEFORE, EventView, Refused, Unavailable, secret

TIMEOUT = 10.0
"""Longest wait for each step of an answer. [s]"""
AGAIN = {408, 425, 429}
"""Answers of the class 4xx after which asking again may help."""


def _client() -> httpx.Client:
    return httpx.Client(timeout=TIMEOUT, follow_redirects=False, trust_env=False)


@dataclass
class Webhook:
    """Posts events as JSON.

    Attributes:
        url: Where to.
        inside: Whether addresses of private networks are allowed.
        secret: Signs (Standard Webhooks, ``v1``); empty for unsigned.
        template: The text of Slack's messages; empty for whole events.
    """

    url: str
    inside: bool
    secret: str = ""
    template: str = ""
    client: httpx.Client = field(default_factory=_client)

    def deliver(self, event: EventView) -> None:
        """Post *event*.

        Raises:
            Unavailable: It was not taken; asking again may help.
            Refused: It will never be.
        """
        said = {"text": event.text(self.template, _slack)} if self.template else None
        body = event.body() if said is None else json.dumps(said).encode()
        request = self._pinned().request(body, self._headers(event, body))
        try:
            answer = self.client.send(request, stream=True)
            answer.close()  # what it says does not matter, however long it is
        except httpx.HTTPError as error:
            raise Unavailable(f"no answer: {type(error).__name__} {error}".strip()) from error
        _judge(answer)

    def close(self) -> None:
        """Close the connections."""
        self.client.close()

    def _pinned(self) -> PinnedUrl:
        try:
            return pinned(secret(self.url), inside=self.inside)
        except Refused:
            if not self.url.startswith(BEFORE):
                raise
            raise Refused(f"{self.url} holds no URL that a webhook may have") from None  # it is a secret

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


def _judge(answer: httpx.Response) -> None:
    if answer.is_success:
        return
    said = f"answers {answer.status_code}"
    if answer.is_redirect:
        raise Refused(f"{said} to {answer.headers.get('location', '')[:200]}: redirects are not followed")
    if answer.is_client_error and answer.status_code not in AGAIN:
        raise Refused(said)
    raise Unavailable(said)
