"""Forms: what they hold, and that a page of ours sent them (tokens against forged requests)."""

import hmac
import secrets
from email import message_from_bytes
from email.policy import HTTP
from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from nightwire.schemas.serving import RefusedError, body_of

TOKEN, HEADER = "token", "X-CSRF-Token"
"""Name of the token in forms, and in requests of scripts."""
MOST = 1 << 20
"""Longest form. [byte]"""
MOST_UPLOADED = 8 << 20
"""Longest form with a file. [byte]"""


MOST_FIELDS = 50


class Form(dict[str, str]):
    """The fields of a form, and the name and bytes of its file, if any."""

    file: tuple[str, bytes] = "", b""


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


async def form_of(http: Request) -> Form:
    """Return a form, which a page of ours sent; lines end as in Python.

    Raises:
        RefusedError: It is too long, no form, or another site's.
    """
    kind = http.headers.get("Content-Type", "")
    try:
        if kind.startswith("multipart/form-data"):
            form = await run_in_threadpool(_parts, kind, await body_of(http, MOST_UPLOADED))
        else:
            text = (await body_of(http, MOST)).decode()
            found = parse_qs(text, keep_blank_values=True, max_num_fields=MOST_FIELDS)
            form = Form({name: _lines(values[-1]) for name, values in found.items()})
    except (ValueError, LookupError) as error:
        raise RefusedError(400, "this is no form") from error
    check_token(http, form.get(TOKEN, ""))
    return form


def _parts(kind: str, body: bytes) -> Form:
    """Return a form with a file: MIME's parts, as any e-mail has them."""
    whole = message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + body, policy=HTTP)
    form, parts = Form(), list(whole.iter_parts())
    if not whole.is_multipart() or len(parts) > MOST_FIELDS:
        raise ValueError(len(parts))
    for part in parts:
        name = part.get_param("name", header="Content-Disposition")
        value = part.get_payload(decode=True)
        if not isinstance(name, str) or not isinstance(value, bytes):
            raise ValueError(name)  # noqa: TRY004  (a form that is none, as all others)
        if (file := part.get_filename()) is None:
            form[name] = _lines(value.decode())
        else:
            form.file = file, value
    return form


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n")


def local(address: str) -> str:
    """Return *address* where it is one of this site's; else that of the first page."""
    ours = address.startswith("/") and not address.startswith(("//", "/\\")) and address.isprintable()
    return address if ours else "/"
