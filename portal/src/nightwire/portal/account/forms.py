"""Forms: what they hold, and that a page of ours sent them (tokens against forged requests)."""

import hmac
import secrets
from urllib.parse import parse_qs

from starlette.requests import Request

from nightwire.schemas.serving import RefusedError, body_of

TOKEN, HEADER = "token", "X-CSRF-Token"
"""Name of the token in forms, and in requests of scripts."""
MOST = 1 << 20
"""Longest form. [byte]"""


def form_token(http: Request) -> str:
    """Return the token that a form, or a script, of this browser's has to send."""
    if TOKEN not in http.session:
        http.session[TOKEN] = secrets.token_urlsafe(32)
    return str(http.session[TOKEN])


def check_token(http: Request, given: str) -> None:
    """Do nothing where *given* is the browser's token.

    Raises:
        RefusedError: 403: another site sent this, or the session has ended.
    """
    wanted = http.session.get(TOKEN, "")
    if not wanted or not hmac.compare_digest(wanted.encode(), given.encode(errors="replace")):
        raise RefusedError(403, "this form is too old, or not ours: load the page anew and send it again")


async def form_of(http: Request) -> dict[str, str]:
    """Return the fields of a form, which a page of ours sent; lines end as in Python.

    Raises:
        RefusedError: It is too long, no form, or another site's.
    """
    try:
        found = parse_qs((await body_of(http, MOST)).decode(), keep_blank_values=True, max_num_fields=50)
    except ValueError as error:
        raise RefusedError(400, "this is no form") from error
    fields = {name: values[-1].replace("\r\n", "\n") for name, values in found.items()}
    check_token(http, fields.get(TOKEN, ""))
    return fields


def local(address: str) -> str:
    """Return *address* where it is one of this site's; else that of the first page."""
    ours = address.startswith("/") and not address.startswith(("//", "/\\")) and address.isprintable()
    return address if ours else "/"
