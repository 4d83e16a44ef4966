"""Who may write to the registry: whoever Kafka lets write to the topic that a subject is of.

A user shows name and password as at Confluent's registry (HTTP's basic authentication); they are
those with which he enters Kafka, and Kafka itself says what he may do.
"""

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient  # type: ignore[attr-defined]

from nightwire.schemas.registry.api import ApiError, Request

TIMEOUT = 10.0
"""Longest wait for Kafka's answer. [s]"""
HOLDS = 10.0
"""How long an answer holds, so that a right that was taken away ends soon. [s]"""
MOST_KEPT = 1000
"""Most answers that are kept."""
SUFFIXES = ("-value", "-key")
NO_TOPIC = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_AUTHORIZATION_FAILED})
NOT_IN = frozenset({KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED})


class Login(NamedTuple):
    """Name and password of a user."""

    name: str
    password: str


class WriteAccess:
    """Lets write who may write to Kafka.

    Args:
        client: librdkafka's properties of the registry's own client: address and credentials.
        clock: Gives the time. [s, any steady clock]
    """

    def __init__(self, client: Mapping[str, str], clock: Callable[[], float] = time.monotonic) -> None:
        self._client, self._clock = client, clock
        self._answers: dict[tuple[str, bytes, str], tuple[float, bool]] = {}

    @property
    def demanded(self) -> bool:
        """Whether Kafka asks who is there; else everybody may write."""
        return "sasl.username" in self._client

    def guard(self, answer: Callable[[Request], object]) -> Callable[[Request], object]:
        """Return an endpoint that asks for the right before it gives *answer*."""

        def guarded(request: Request) -> object:
            self.check(request)
            return answer(request)

        return guarded

    def check(self, request: Request) -> None:
        """Do nothing where the user of *request* may write its subject.

        Raises:
            ApiError: 401 where nobody, or somebody with a wrong password, asks; 40301 where he has
                no right; 50301 where Kafka does not answer.
        """
        if not self.demanded:
            return
        if (login := login_of(request.authorization)) is None:
            raise ApiError(401, "writing needs a name and a password (basic authentication)")
        subject = request.path.get("subject")
        if not self._may(login, topic_of(subject)):
            named = f"subject {subject!r}" if subject else "what holds for all subjects"
            raise ApiError(40301, f"{login.name} has no right to write {named}")

    def _may(self, login: Login, topic: str) -> bool:
        """Return Kafka's answer, for a while the last one.  An empty *topic* is the cluster."""
        own = (self._client["sasl.username"], self._client.get("sasl.password", ""))
        if hmac.compare_digest("\0".join(own).encode(), "\0".join(login).encode()):
            return True
        key = (login.name, hashlib.sha256(login.password.encode()).digest(), topic)
        since, answer = self._answers.get(key, (float("-inf"), False))
        if self._clock() - since > HOLDS:
            answer = self._asked(login, topic)
            if len(self._answers) >= MOST_KEPT:
                self._answers.clear()
            self._answers[key] = (self._clock(), answer)
        return answer

    def _mechanisms(self, login: Login) -> Sequence[str]:
        """Return by what *login* may enter Kafka: the stack's operator, whose name has a dot, by
        PLAIN.
        """
        own = self._client.get("sasl.mechanism", "")
        scram = own if own.startswith("SCRAM") else "SCRAM-SHA-512"
        return (scram, "PLAIN") if "." in login.name else (scram,)

    def _as(self, login: Login, mechanism: str) -> dict[str, Any]:
        """Return librdkafka's properties of a client of *login*."""
        return {
            **self._client, "sasl.username": login.name, "sasl.password": login.password, "log_level": 0,
            "sasl.mechanism": mechanism,
        }  # fmt: skip

    def _asked(self, login: Login, topic: str) -> bool:
        for mechanism in self._mechanisms(login):
            if (answer := self._asked_by(mechanism, login, topic)) is not None:
                return answer
        raise ApiError(401, f"the name {login.name!r} or the password is wrong")

    def _asked_by(self, mechanism: str, login: Login, topic: str) -> bool | None:
        """Return Kafka's answer; None where it does not let *login* in by *mechanism*."""
        errors: list[int] = []
        client = self._as(login, mechanism)
        admin = AdminClient(client | {"error_cb": lambda error: errors.append(error.code())})
        asked = {"include_authorized_operations": True, "request_timeout": TIMEOUT}
        if topic:
            future = admin.describe_topics(TopicCollection([topic]), **asked)[topic]
        else:
            future = admin.describe_cluster(**asked)
        while not future.done() and not NOT_IN & set(errors):
            admin.poll(0.05)
        if NOT_IN & set(errors):
            return None
        wanted = AclOperation.WRITE if topic else AclOperation.ALTER
        try:
            return wanted in (future.result().authorized_operations or ())
        except KafkaException as error:
            if error.args[0].code() in NO_TOPIC:
                return False
            raise ApiError(
                50301, f"Kafka does not say what {login.name} may do: {error.args[0].str()}"
            ) from error


def topic_of(subject: str | None) -> str:
    """Return the topic that *subject* is of, by Confluent's rule; empty for other subjects."""
    suffix = next((one for one in SUFFIXES if subject and subject.endswith(one)), None)
    return subject.removesuffix(suffix) if subject and suffix else ""


def login_of(authorization: str) -> Login | None:
    """Return name and password of the header ``Authorization``; None where it has none."""
    kind, _, encoded = authorization.partition(" ")
    try:
        text = base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    name, colon, password = text.partition(":")
    return Login(name, password) if kind.lower() == "basic" and colon and name else None
