"""Sessions: the cookie names one, and this process alone knows who it is, and his password."""

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from starlette.requests import Request

from nightwire.schemas.serving import Login, Token

SILENCE, LONGEST = 3600.0, 12 * 3600.0
"""A session ends so long after its last request, and so long after it began. [s]"""
MOST = 10_000
"""Most sessions: of one more, the one that was silent longest ends."""
NUMBER = "session"
"""Under which the signed cookie keeps a session's number."""

OPEN_LIST = "open_list"
"""Attribute of a request's state: it goes on by itself, and is no sign that somebody is there."""


@dataclass
class Session:
    """Somebody who signed in.

    Attributes:
        login: What he shows Kafka.  Where Kafka asks nobody, a name that nobody has verified.
        ends: When it ends, whatever happens.
        silent: When it ends if nothing is asked until then. [s, the sessions' clock]
    """

    login: Login | Token
    ends: float
    silent: float


class Sessions:
    """All sessions.  They end with the process: whoever was signed in signs in again.

    Args:
        clock: Gives the time. [s, any steady clock]

    Attributes:
        secret: Signs their cookies.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.secret, self._clock = secrets.token_urlsafe(32), clock
        self._known: OrderedDict[str, Session] = OrderedDict()

    def begin(self, http: Request, login: Login | Token) -> None:
        """Let the browser that asks be *login* from now on, under a number that nobody knew."""
        self.end(http)
        now, number = self._clock(), secrets.token_urlsafe(32)
        life = min(LONGEST, login.expires - time.time()) if isinstance(login, Token) else LONGEST
        self._known[number] = Session(login, now + life, now + SILENCE)
        if len(self._known) > MOST:
            self._known.popitem(last=False)
        http.session[NUMBER] = number

    def of(self, http: Request) -> Session | None:
        """Return the session of the browser that asks; None without one, or where it has ended.

        It lives on by that, but for a live list, `OPEN_LIST`: nobody need sit before it.
        """
        self._forget_ended()
        number, now = http.session.get(NUMBER, ""), self._clock()
        if (one := self._known.get(number)) is None:
            return None
        if now >= one.ends:
            self.end(http)
            return None
        if not getattr(http.state, OPEN_LIST, False):
            one.silent = now + SILENCE
            self._known.move_to_end(number)
        return one

    def _forget_ended(self) -> None:
        """Forget who was silent for too long, and his password, whether or not he comes again."""
        while self._known and self._clock() >= next(iter(self._known.values())).silent:
            self._known.popitem(last=False)

    def end(self, http: Request) -> None:
        """Forget who the browser that asks is, and all that its cookie holds."""
        self._known.pop(http.session.get(NUMBER, ""), None)
        if http.session:
            http.session.clear()
