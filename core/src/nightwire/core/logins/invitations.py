"""Invitations: a code that lets somebody choose his first password, once and for a while.

The code is the password of a user of Kafka's that may do nothing, `nightwire.invited.<name>`: what
is changed in the code makes it another password, a second invitation replaces the first, and the
one who took it up ends it.
"""

import secrets
import time
from dataclasses import dataclass

from nightwire.core.access.passwords import INVITED
from nightwire.schemas.topics import NAME


class InvitationError(ValueError):
    """A code cannot be taken; the message says why."""


@dataclass(frozen=True)
class Invitation:
    """A code.

    Attributes:
        name: Whom it lets in.
        expires: Until when it holds. [s since 1970]
        secret: What cannot be guessed.
    """

    name: str
    expires: int
    secret: str

    @classmethod
    def fresh(cls, name: str, life: float) -> "Invitation":
        """Return a new one for *name*, that holds for *life* [s]."""
        return cls(name, int(time.time() + life), secrets.token_urlsafe(24))

    @classmethod
    def read(cls, code: str) -> "Invitation":
        """Return the invitation that *code* is.

        Raises:
            InvitationError: It is none, or has ended.
        """
        name, _, rest = code.strip().partition(".")
        expires, _, secret = rest.partition(".")
        if not (NAME.fullmatch(name) and expires.isdecimal() and secret and code.isascii()):
            raise InvitationError("this is no code of an invitation")
        if int(expires[:12]) < time.time():
            raise InvitationError(f"the invitation of {name} has ended: ask for another one")
        return cls(name, int(expires), secret)

    @property
    def code(self) -> str:
        """The code, which is also the password of `principal`."""
        return f"{self.name}.{self.expires}.{self.secret}"

    @property
    def principal(self) -> str:
        """The user of Kafka's that stands for it."""
        return f"{INVITED}{self.name}"
