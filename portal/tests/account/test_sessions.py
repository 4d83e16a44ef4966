"""Sessions end, and forms are ours."""

import asyncio
import time
from typing import Any

import pytest
from starlette.requests import Request

from nightwire.portal.account import Sessions, check_csrf_token, csrf_token, forms, local_path, read_form
from nightwire.portal.account.forms import MAX_FORM
from nightwire.portal.account.sessions import IDLE_TIMEOUT, LIVE_LIST, MAX_LIFETIME
from nightwire.schemas.serving import Login, RefusedError, Token

ANN = Login("ann", "secret")


def asked(session: dict[str, Any] | None = None, body: bytes = b"", kind: str = "") -> Request:
    """Return a request of a browser whose cookie holds *session*."""

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    held = {} if session is None else session
    headers = [(b"content-type", kind.encode())] if kind else []
    return Request({"type": "http", "method": "POST", "headers": headers, "session": held}, receive)


def test_a_session_ends_after_a_silence_and_at_the_latest_after_a_night() -> None:
    now = [1000.0]
    sessions, http = Sessions(lambda: now[0]), asked()
    sessions.begin(http, ANN)
    for _ in range(int(MAX_LIFETIME / IDLE_TIMEOUT * 2) - 1):
        now[0] += IDLE_TIMEOUT / 2
        found = sessions.of(http)
        assert found is not None
        assert found.login == ANN
    now[0] += IDLE_TIMEOUT / 2
    assert sessions.of(http) is None
    sessions.begin(http, ANN)
    now[0] += IDLE_TIMEOUT
    assert sessions.of(asked()) is None  # whoever asks next, nobody's password is kept
    assert not sessions._sessions
    assert sessions.of(http) is None


def test_an_open_list_keeps_no_session_alive() -> None:
    now, http = [1000.0], asked()
    sessions = Sessions(lambda: now[0])
    sessions.begin(http, ANN)
    listening = asked(http.session)
    setattr(listening.state, LIVE_LIST, True)
    now[0] += IDLE_TIMEOUT / 2
    assert sessions.of(listening) is not None
    now[0] += IDLE_TIMEOUT / 2
    assert sessions.of(listening) is None


def test_a_session_ends_with_its_token() -> None:
    now, http = [0.0], asked()
    sessions = Sessions(lambda: now[0])
    sessions.begin(http, Token("a.b.c", "ann", "nightwire", time.time() + 60))
    assert sessions.of(http) is not None
    now[0] = 61.0
    assert sessions.of(http) is None


def test_the_cookie_holds_a_number_that_is_new_at_each_sign_in_and_no_secret() -> None:
    sessions, http = Sessions(), asked({"session": "chosen by a stranger", "token": "likewise"})
    sessions.begin(http, ANN)
    first = dict(http.session)
    assert "chosen" not in str(first)
    assert "likewise" not in str(first)
    assert "secret" not in str(first)
    sessions.begin(http, ANN)
    assert sessions.of(asked(first)) is None
    sessions.end(http)
    assert sessions.of(http) is None


@pytest.mark.parametrize("given", ["", "another", "\udcff", "ä"])
def test_a_form_without_the_browsers_token_is_refused(given: str) -> None:
    http = asked()
    assert csrf_token(http) == csrf_token(http)
    check_csrf_token(http, csrf_token(http))
    with pytest.raises(RefusedError, match="load the page anew"):
        check_csrf_token(http, given)
    with pytest.raises(RefusedError, match="load the page anew"):
        check_csrf_token(asked(), given)


def test_a_form_is_read_as_a_browser_sends_it() -> None:
    body = b"token=t&text=one%0D%0Atwo+%C3%A9&name="
    assert asyncio.run(read_form(asked({"token": "t"}, body))) == {
        "token": "t",
        "text": "one\ntwo é",
        "name": "",
    }
    for wrong in (b"token=t&" + b"a=1&" * 60, b"\xff", b"token=t&text=" + b"x" * MAX_FORM):
        with pytest.raises(RefusedError):
            asyncio.run(read_form(asked({"token": "t"}, wrong)))


def test_a_form_that_never_ends_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "BODY_TIMEOUT", 0.01)
    http = asked({"token": "t"})
    http._receive = asyncio.Event().wait  # type: ignore[assignment]
    with pytest.raises(RefusedError, match="did not come") as told:
        asyncio.run(asyncio.wait_for(read_form(http), 60))
    assert told.value.status == 408


def test_a_file_comes_as_it_is() -> None:
    file = bytes(range(256)) * 3 + b"\r\n\r\n--b\r\r\n\n"
    fields = b'--b\r\nContent-Disposition: form-data; name="token"\r\n\r\nt\r\n'
    fields += b'--b\r\nContent-Disposition: form-data; name="text"\r\n\r\n\xc3\xa9\r\nx\r\n'
    head = b'--b\r\nContent-Disposition: form-data; name="targets"; filename="a.fits"\r\n\r\n'
    kind, whole = "multipart/form-data; boundary=b", file.replace(b"--b", b"--c")
    form = asyncio.run(read_form(asked({"token": "t"}, fields + head + whole + b"\r\n--b--\r\n", kind)))
    assert (form["text"], form.file) == ("é\nx", ("a.fits", whole))
    head = b"--b\r\nContent-Disposition: form-data; name="
    long, deep = (fields + head + name + b"\r\n\r\n\r\n--b--" for name in (b"x" + b";a=b" * 999, b"(" * 5000))
    for wrong in (b"", fields[:-1] + b"\xff\r\n--b--", fields * 60 + b"--b--", long, deep):
        with pytest.raises(RefusedError):
            asyncio.run(read_form(asked({"token": "t"}, wrong, kind)))


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("/filters?q=1", "/filters?q=1"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("https://evil.example", "/"),
        ("/x\r\nSet-Cookie: a=b", "/"),
        ("", "/"),
    ],
)
def test_after_the_sign_in_one_stays_here(address: str, found: str) -> None:
    assert local_path(address) == found
