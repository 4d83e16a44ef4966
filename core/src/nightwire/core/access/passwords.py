"""Passwords of Kafka's users (SCRAM): given, made, and set."""

import os
import secrets
from collections.abc import Mapping

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from nightwire.schemas import MendableError

TIMEOUT = 30.0
"""Longest wait for an answer. [s]"""
ITERATIONS = 4096
"""Iterations of SCRAM, Kafka's least: passwords that we make are too long to be guessed."""
MECHANISM = ScramMechanism.SCRAM_SHA_512
INVITED = "nightwire.invited."
"""What the names of users begin with whose password is the code of an invitation."""
VARIABLE = "NIGHTWIRE_NEW_PASSWORD"
MIN_PASSWORD = 12
"""Least length of a password that a person gives. [character]"""


class PasswordError(MendableError):
    """A password is refused; the message says why."""


def given_password(env: Mapping[str, str] = os.environ) -> str | None:
    """Return the password in the environment; None where one is to be made.

    Raises:
        PasswordError: It is too short, or has characters that clients encode in several ways.
    """
    given = env.get(VARIABLE)
    return None if given is None else checked_password(given, f"the password in {VARIABLE}")


def checked_password(given: str, what: str = "a password") -> str:
    """Return *given* if it can be a password.

    Raises:
        PasswordError: It is too short, or has characters that clients encode in several ways.
    """
    if len(given) < MIN_PASSWORD or not given.isascii() or not given.isprintable():
        raise PasswordError(f"{what} must have {MIN_PASSWORD} or more characters of ASCII")
    return given


def random_password() -> str:
    """Return a new password of 192 random bits."""
    return secrets.token_urlsafe(24)


def set_password(kafka: AdminClient, name: str, password: str | None) -> None:
    """Give the user *name* a password; None takes it away.

    Raises:
        KafkaException: Kafka refuses, has no such password, or cannot be reached.
    """
    change = (
        UserScramCredentialDeletion(name, MECHANISM)
        if password is None
        else UserScramCredentialUpsertion(name, ScramCredentialInfo(MECHANISM, ITERATIONS), password.encode())
    )
    for future in kafka.alter_user_scram_credentials([change]).values():
        future.result(TIMEOUT)
