"""Signing in and out."""

from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from nightwire.portal.account import csrf_token, local_path, read_form
from nightwire.portal.serve.pages import render
from nightwire.portal.serve.portal import Portal
from nightwire.schemas.serving import Login, RefusedError, Token, login_of
from nightwire.schemas.topics import NAME


async def sign_in(portal: Portal, http: Request) -> Response:
    """Show the form of the sign-in, by name and password or token; or sign in."""
    if http.method == "GET":
        return _form(portal, http, local_path(http.query_params.get("next", "/filters")))
    form = await read_form(http)
    to = local_path(form.get("next", "/"))
    try:
        await portal.authorizer.sign_in(http, _login(form, demanded=portal.authorizer.access.demanded))
    except RefusedError as error:
        return _form(portal, http, to, str(error), error.status, name=form.get("name", "")[:100])
    return RedirectResponse(to, 303)


async def sign_out(portal: Portal, http: Request) -> Response:
    """End the session."""
    await read_form(http)
    portal.authorizer.sessions.end(http)
    return RedirectResponse("/", 303)


def redirect(http: Request) -> Response:
    """Return a redirect to the sign-in, and from there back."""
    back = http.url.path + (f"?{http.url.query}" if http.url.query else "")
    return RedirectResponse(f"/sign-in?next={quote(back if http.method == 'GET' else '/filters')}", 303)


def _login(form: dict[str, str], *, demanded: bool) -> Login | Token:
    """Return the credentials in a form.

    Raises:
        RefusedError: 400: they cannot be anybody's.
    """
    name, password = form.get("name", "").strip(), form.get("password", "")
    if not demanded:
        if not NAME.fullmatch(name):
            raise RefusedError(400, "an owner's name has small letters, digits and '-', 36 at most")
        return Login(name, "")
    token = login_of(f"Bearer {form.get('secret', '').strip()}")
    if token is not None:
        return token
    if not name or not password or "\0" in name + password:
        raise RefusedError(400, "a name and a password are wanted, or a token (`nightwire user token`)")
    return Login(name, password)


def _form(
    portal: Portal, http: Request, to: str, why: str = "", status: int = 200, name: str = ""
) -> Response:
    return render(
        portal, "sign-in.html", 403 if status == 401 else status,  # 401: browsers would ask by themselves
        token=csrf_token(http), to=to, why=why, name=name, demanded=portal.authorizer.access.demanded,
    )  # fmt: skip
