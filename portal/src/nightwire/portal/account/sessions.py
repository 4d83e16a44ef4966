"""Sessions: cookies hold their ids; credentials are in the memory of this process alone."""

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import Request

from nightwire.schemas.serving import Login, Token

IDLE_TIMEOUT, MAX_LIFETIME = 3600.0, 12 * 3600.0
"""Time from a session's last request, and from its begin, to its end. [s]"""
MAX_SESSIONS = 10_000
"""Most sessions; one more ends the one that was idle longest."""
SESSION_ID = "session"
"""Key of the session's id in the signed cookie."""
LIVE_LIST = "live_list"
"""Attribute of a live list's request: it does not keep its session from being idle."""


@dataclass
class Session:
    """A signed-in browser's session.

    Attributes:
        login: Credentials for Kafka; where Kafka demands none, a name that nobody has verified.
        expires: Its end at the latest. [s, the sessions' clock]
        idle_until: Its end without a further request. [s, the sessions' clock]
    """

    login: Login | Token
    expires: float
    idle_until: float


class Sessions:
    """All sessions.  They end with the process.

    Args:
        clock: Gives the time. [s, any steady clock]

    Attributes:
        secret: Key that signs their cookies.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.secret, self._clock = secrets.token_urlsafe(32), clock
        self._sessions: OrderedDict[str, Session] = OrderedDict()

    def middleware(self, *, private: bool) -> Middleware:
        """Return what signs the cookies, which are sent by HTTPS alone where *private*."""
        return Middleware(
            SessionMiddleware,
            secret_key=self.secret,
            session_cookie="__Host-nightwire" if private else "nightwire",
            max_age=round(MAX_LIFETIME),
            https_only=private,
        )

    def begin(self, http: Request, login: Login | Token) -> None:
        """Begin a session for the browser, in place of its former one, with a new id."""
        self.end(http)
        now, session_id = self._clock(), secrets.token_urlsafe(32)
        life = min(MAX_LIFETIME, login.expires - time.time()) if isinstance(login, Token) else MAX_LIFETIME
        self._sessions[session_id] = Session(login, now + life, now + IDLE_TIMEOUT)
        if len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)
        http.session[SESSION_ID] = session_id

    def of(self, http: Request) -> Session | None:
        """Return the browser's session, if any; a request, but no `LIVE_LIST`, keeps it alive."""
        self._end_idle()
        session_id, now = http.session.get(SESSION_ID, ""), self._clock()
        if (one := self._sessions.get(session_id)) is None:
            return None
        if now >= one.expires:
            self.end(http)
            return None
        if not getattr(http.state, LIVE_LIST, False):
            one.idle_until = now + IDLE_TIMEOUT
            self._sessions.move_to_end(session_id)
        return one

    def _end_idle(self) -> None:
        """End the sessions that were idle for too long, so that no password is kept."""
        while self._sessions and self._clock() >= next(iter(self._sessions.values())).idle_until:
            self._sessions.popitem(last=False)

    def end(self, http: Request) -> None:
        """End the browser's session, and clear its cookie."""
        self._sessions.pop(http.session.get(SESSION_ID, ""), None)
        if http.session:
            http.session.clear()
