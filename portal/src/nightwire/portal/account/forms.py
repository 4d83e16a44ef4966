"""Forms: their fields, and a file."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email import message_from_bytes, message_from_string
from email.message import Message
from urllib.parse import parse_qs

from starlette.requests import Request

from nightwire.portal.account.csrf import CSRF_FIELD, check_csrf_token
from nightwire.schemas.serving import RefusedError, body_of

MAX_FORM = 1 << 16
"""Longest form of anybody's. [byte]"""
MAX_JSON, MAX_UPLOAD = 1 << 20, 8 << 20
"""Longest JSON, and longest form with a file: of owners. [byte]"""
BODY_TIMEOUT = 120.0
"""Longest time in which a form comes: one that never ends would hold its memory. [s]"""
MAX_FIELDS = 50
MAX_HEAD = 2000
"""Longest header of a part of a form. [byte]"""


class Form(dict[str, str]):
    """The fields of a form, and the name and bytes of its file, if any."""

    file: tuple[str, bytes] = "", b""


@asynccontextmanager
async def in_time() -> AsyncIterator[None]:
    """Read a body within the block.

    Raises:
        RefusedError: 408: it takes longer than `BODY_TIMEOUT`.
    """
    try:
        async with asyncio.timeout(BODY_TIMEOUT):
            yield
    except TimeoutError as error:
        raise RefusedError(408, f"what you send did not come within {BODY_TIMEOUT:g} s") from error


async def read_form(http: Request, most: int = MAX_FORM) -> Form:
    """Return the form in a request, its CSRF token checked; lines end with ``\\n``.

    Args:
        http: The request.
        most: Longest form. [byte]

    Raises:
        RefusedError: It is too long, no form, or another site's.
    """
    kind = http.headers.get("Content-Type", "")
    async with in_time():
        body = await body_of(http, most)
    try:
        if kind.startswith("multipart/form-data"):
            form = _multipart(kind, body)
        else:
            found = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=MAX_FIELDS)
            form = Form({name: _lines(values[-1]) for name, values in found.items()})
    except (ValueError, LookupError) as error:
        raise RefusedError(400, "this is no form") from error
    check_csrf_token(http, form.get(CSRF_FIELD, ""))
    return form


def _multipart(kind: str, body: bytes) -> Form:
    """Parse a multipart form (RFC 7578); in linear time, for strangers send them."""
    boundary = message_from_string(f"Content-Type: {kind}\n\n").get_boundary("")
    _, *parts = (b"\r\n" + body).split(b"\r\n--" + boundary.encode(), MAX_FIELDS + 1)
    if not boundary or not parts or not parts.pop().startswith(b"--"):
        raise ValueError(kind)
    form = Form()
    for part in parts:
        head, _, value = part.partition(b"\r\n\r\n")
        header = message_from_bytes(head.strip()) if len(head) <= MAX_HEAD else Message()
        name, file = header.get_param("name", header="Content-Disposition"), header.get_filename()
        if not isinstance(name, str):
            raise ValueError(name)  # noqa: TRY004  (a form that is none, as all others)
        if file is None:
            form[name] = _lines(value.decode())
        else:
            form.file = file, value
    return form


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n")


def local_path(address: str) -> str:
    """Return *address* if it is a path on this site, else ``/``."""
    ours = address.startswith("/") and not address.startswith(("//", "/\\")) and address.isprintable()
    return address if ours else "/"
