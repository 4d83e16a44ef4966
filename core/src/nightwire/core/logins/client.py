"""Requests to the process at which users choose passwords and get tokens."""

from collections.abc import Mapping
from typing import Any

from nightwire.core.presence import SiteHttpError, request


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
        SiteHttpError: It refuses, or does not answer.
    """
    answer = request("POST", f"{url}{path}", json=dict(asked), login=login)
    try:
        found = answer.json()
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise SiteHttpError(f"{url} is no process of nightwire's users")
    return found
