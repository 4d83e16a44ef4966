"""CSRF tokens: a form, or a request of a script, is of a page of ours."""

import hmac
import secrets

from starlette.requests import Request

from nightwire.schemas.serving import RefusedError

CSRF_FIELD, CSRF_HEADER = "token", "X-CSRF-Token"
"""Name of the CSRF token in forms, and in requests of scripts."""


def csrf_token(http: Request) -> str:
    """Return the CSRF token that forms and scripts of this browser must send."""
    if CSRF_FIELD not in http.session:
        http.session[CSRF_FIELD] = secrets.token_urlsafe(32)
    return str(http.session[CSRF_FIELD])


def check_csrf_token(http: Request, given: str) -> None:
    """Refuse requests whose token is not the browser's.

    Raises:
        RefusedError: 403: another site sent it, or the session has ended.
    """
    wanted = http.session.get(CSRF_FIELD, "")
    if not wanted or not hmac.compare_digest(wanted.encode(), given.encode(errors="replace")):
        raise RefusedError(403, "this form is too old, or not ours: load the page anew and send it again")
