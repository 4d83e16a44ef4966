"""Who asks, by the header ``Authorization``: a name and a password, or a token."""

import base64
import binascii
import hashlib
import json
from typing import Any, NamedTuple


class Login(NamedTuple):
    """Name and password of a user (HTTP's basic authentication)."""

    name: str
    password: str

    @property
    def digest(self) -> bytes:
        """What two logins have in common only where they are the same."""
        return hashlib.sha256("\0".join(("password", *self)).encode()).digest()


class Token(NamedTuple):
    """A token (JSON Web Token), believed by nobody yet.

    Attributes:
        text: The token.
        name: Whom it names.
        issuer: Who issued it.
        expires: Until when it holds. [s since 1970]
    """

    text: str
    name: str
    issuer: str
    expires: float

    @property
    def digest(self) -> bytes:
        """What two tokens have in common only where they are the same."""
        return hashlib.sha256("\0".join(("token", self.text)).encode()).digest()


def login_of(authorization: str) -> Login | Token | None:
    """Return who the header ``Authorization`` says is asking; None where it says nothing usable."""
    kind, _, said = authorization.partition(" ")
    try:
        match kind.lower():
            case "basic":
                name, colon, password = base64.b64decode(said, validate=True).decode().partition(":")
                return Login(name, password) if colon and name and "\0" not in name + password else None
            case "bearer":
                return _token(said.strip())
    except (binascii.Error, ValueError, TypeError, OverflowError, RecursionError):
        return None
    return None


def _token(text: str) -> Token | None:
    parts = text.split(".")
    if len(parts) != 3 or not text.isascii():
        return None
    claims: Any = json.loads(base64.urlsafe_b64decode(parts[1] + "=="))
    if not isinstance(claims, dict):
        return None
    return Token(text, str(claims.get("sub", "")), str(claims.get("iss", "")), float(claims.get("exp", 0)))
