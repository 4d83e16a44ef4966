"""Passwords of owners and brokers: made here and shown once, or given in the environment."""

import os
import secrets
from collections.abc import Mapping

VARIABLE = "NIGHTWIRE_NEW_PASSWORD"
SHORTEST = 12
"""Fewest characters of a password that a person gives."""


class PasswordError(Exception):
    """The password in the environment will not do; the message says why."""


def given_password(env: Mapping[str, str] = os.environ) -> str | None:
    """Return the password that the environment gives; None where one is to be made.

    Raises:
        PasswordError: It is too short, or clients might spell it in several ways.
    """
    given = env.get(VARIABLE)
    if given is not None and (len(given) < SHORTEST or not given.isascii() or not given.isprintable()):
        raise PasswordError(f"the password in {VARIABLE} must have {SHORTEST} or more characters of ASCII")
    return given


def new_password() -> str:
    """Return a new one of 192 random bits."""
    return secrets.token_urlsafe(24)
