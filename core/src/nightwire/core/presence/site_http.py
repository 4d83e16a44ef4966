"""Requests to the site's own processes over HTTP, with a name and password or a token."""

import os
from typing import TYPE_CHECKING, Any, Literal

from nightwire.schemas import MendableError
from nightwire.schemas.kafka_environment import properties

if TYPE_CHECKING:
    import ssl

    import httpx

TIMEOUT = 30.0
"""Longest wait for an answer. [s]"""


class SiteHttpError(MendableError):
    """A process of the site refuses, or does not answer; the message says why.

    Args:
        why: For a person.
        status: HTTP's; 0 where there was no answer.
    """

    def __init__(self, why: str, status: int = 0) -> None:
        super().__init__(why)
        self.status = status


class NobodyAnswersError(SiteHttpError):
    """Nobody answers there."""


def request(
    method: str,
    url: str,
    *,
    login: tuple[str, str] | None = None,
    token: str = "",
    timeout: float = TIMEOUT,
    **more: Any,
) -> "httpx.Response":
    """Return the answer of a process of the site.

    Args:
        method: HTTP's.
        url: Where; passwords go to other machines by https alone.
        login: Name and password.
        token: What is shown in their place; empty for none.
        timeout: Longest wait. [s]
        more: What `httpx.request` takes, such as ``json``.

    Raises:
        NobodyAnswersError: Nobody answers there.
        SiteHttpError: It refuses; the message is its own where it has one.
    """
    import httpx

    whom = whom_to_trust(url, login or (("", token) if token else None))
    shown: dict[str, Any] = {"headers": {"Authorization": f"Bearer {token}"}} if token else {}
    try:
        answer = httpx.request(method, url, auth=login, timeout=timeout, verify=whom, **shown, **more)
    except httpx.TransportError as error:
        raise NobodyAnswersError(f"nobody answers at {url}: {error}") from error
    if answer.is_error:
        raise SiteHttpError(f"{url} refuses: {message_of(answer)}", answer.status_code)
    return answer


def whom_to_trust(url: str, login: tuple[str, str] | str | None) -> "ssl.SSLContext | Literal[False]":
    """Return httpx's ``verify`` for a client of *url*.

    Passwords go to other machines by https alone, but to those of a private network, such as
    compose's, that ``NIGHTWIRE_PRIVATE_HOSTS`` names.

    Raises:
        SiteHttpError: *login* would go to another machine for everybody to read.
    """
    import httpx

    where = httpx.URL(url)
    if where.scheme == "https":
        return trusted()  # to read certificates takes 30 ms
    private = os.environ.get("NIGHTWIRE_PRIVATE_HOSTS", "").split(",")
    if login and where.host not in ("127.0.0.1", "localhost", *private):
        raise SiteHttpError(f"{url}: a password goes to another machine by https:// alone")
    return False


def message_of(answer: "httpx.Response") -> str:
    """Return why *answer* refuses: its own words, where it has some."""
    try:
        found = answer.json()
    except ValueError:
        found = None
    return (
        str(found["message"])
        if isinstance(found, dict) and "message" in found
        else f"HTTP {answer.status_code}"
    )


def trusted() -> "ssl.SSLContext":
    """Return whom to believe: whom the machine believes, and the authority of our Kafka."""
    import httpx

    context, kafka = httpx.create_ssl_context(), properties()
    if text := kafka.get("ssl.ca.pem"):
        context.load_verify_locations(cadata=text)
    elif file := kafka.get("ssl.ca.location"):
        context.load_verify_locations(file)
    return context
