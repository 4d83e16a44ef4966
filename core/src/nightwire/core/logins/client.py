"""Requests to the process at which users choose passwords and get tokens."""

import ssl
from collections.abc import Mapping
from typing import Any

import httpx

from nightwire.schemas import MendableError
from nightwire.schemas.kafka_environment import properties

TIMEOUT = 30.0
"""Longest wait for an answer. [s]"""


class UsersError(MendableError):
    """It refuses, or does not answer; the message says why."""


def post(
    url: str, path: str, asked: Mapping[str, Any], login: tuple[str, str] | None = None
) -> dict[str, Any]:
    """Return the answer to *asked* at *path*.

    Args:
        url: Of the process; passwords go to other machines by https alone.
        path: Such as ``/tokens``.
        asked: The body.
        login: Name and password.

    Raises:
        UsersError: It refuses, or does not answer.
    """
    where = httpx.URL(url)
    if where.scheme != "https" and where.host not in ("127.0.0.1", "localhost"):
        raise UsersError(f"{url}: a password goes to another machine by https:// alone")
    try:
        answer = httpx.post(f"{url}{path}", json=dict(asked), auth=login, timeout=TIMEOUT, verify=_trusted())
    except httpx.TransportError as error:
        raise UsersError(f"nobody answers at {url}: {error}") from error
    try:
        found = answer.json()
    except ValueError:
        found = {}
    if answer.is_error or not isinstance(found, dict):
        why = found.get("message") if isinstance(found, dict) else None
        raise UsersError(f"{url} refuses: {why or f'HTTP {answer.status_code}'}")
    return found


def _trusted() -> ssl.SSLContext:
    """Return whom to believe: whom the machine believes, and the authority of our Kafka."""
    context, kafka = httpx.create_ssl_context(), properties()
    if text := kafka.get("ssl.ca.pem"):
        context.load_verify_locations(cadata=text)
    elif file := kafka.get("ssl.ca.location"):
        context.load_verify_locations(file)
    return context
