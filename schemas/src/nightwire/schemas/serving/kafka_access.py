"""What a user may do, by Kafka's own word: his name and password, or token, are shown to Kafka."""

import hmac
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient  # type: ignore[attr-defined]

from nightwire.schemas.serving.logins import Login, Token

TIMEOUT = 10.0
"""Longest wait for Kafka's answer. [s]"""
HOLDS = 10.0
"""How long an answer holds, so that a right that was taken away ends soon. [s]"""
MOST_KEPT = 20_000
"""Most answers that are kept."""
PASSWORD = ("sasl.username", "sasl.password")
NO_TOPIC = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_AUTHORIZATION_FAILED})
NOT_IN = frozenset({KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED})
SITE = "nightwire"
"""The issuer of the site's own tokens."""
FAR = 2.0**32
"""No token holds so long. [s since 1970]"""


class NotLetInError(Exception):
    """Kafka does not let somebody in: a wrong password, or a token that has ended."""


class KafkaSilentError(Exception):
    """Kafka does not say what somebody may do."""


class KafkaAccess:
    """Asks Kafka what a user may do.

    Args:
        client: librdkafka's properties of our own client: address and credentials.
        tokens: Address at which Kafka judges the site's own tokens; empty: where it judges others'.
        clock: Gives the time. [s, any steady clock]
    """

    def __init__(
        self, client: Mapping[str, str], tokens: str = "", clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._client, self._tokens, self._clock = client, tokens, clock
        self._answers: dict[tuple[bytes, str, AclOperation], tuple[float, bool]] = {}

    @property
    def demanded(self) -> bool:
        """Whether Kafka asks who is there; else everybody may do everything."""
        return "sasl.username" in self._client

    def may(self, login: Login | Token, operation: AclOperation, topic: str = "") -> bool:
        """Return Kafka's answer, for a while the last one.

        Args:
            login: Who asks.
            operation: What is asked for.
            topic: Of which topic; empty for the cluster.

        Raises:
            NotLetInError: Kafka does not know *login*.
            KafkaSilentError: Kafka does not answer.
        """
        return bool(self.allowed(login, operation, [topic]))

    def allowed(
        self, login: Login | Token, operation: AclOperation, topics: Collection[str]
    ) -> frozenset[str]:
        """Return those of *topics* that *login* may do that with; Kafka is asked once for all.

        Raises:
            NotLetInError: Kafka does not know *login*.
            KafkaSilentError: Kafka does not answer.
        """
        kept = self._kept(login, operation, topics)
        if missing := [topic for topic in topics if topic not in kept]:
            told = self._asked(login, operation, missing)
            if len(self._answers) + len(told) > MOST_KEPT:
                self._answers.clear()
            now = self._clock()
            self._answers |= {(login.digest, topic, operation): (now, yes) for topic, yes in told.items()}
            kept |= told
        return frozenset(topic for topic, yes in kept.items() if yes)

    def held(
        self, login: Login | Token, operation: AclOperation, topics: Collection[str]
    ) -> frozenset[str] | None:
        """Return what `allowed` returns, at once; None where Kafka has to be asked."""
        kept = self._kept(login, operation, topics)
        return frozenset(topic for topic in topics if kept[topic]) if len(kept) >= len({*topics}) else None

    def _kept(self, login: Login | Token, operation: AclOperation, topics: Iterable[str]) -> dict[str, bool]:
        """Return the answers that still hold, of an ended token none; we may do everything."""
        if isinstance(login, Token) and time.time() >= login.expires:
            return {}
        own = Login(self._client["sasl.username"], self._client.get("sasl.password", ""))
        if hmac.compare_digest(own.digest, digest := login.digest):
            return dict.fromkeys(topics, True)
        now, never = self._clock(), (float("-inf"), False)
        found = {topic: self._answers.get((digest, topic, operation), never) for topic in topics}
        return {topic: yes for topic, (since, yes) in found.items() if now - since <= HOLDS}

    def clients(self, login: Login | Token) -> Iterator[dict[str, Any]]:
        """Yield librdkafka's properties of the clients by which *login* may enter Kafka.

        The stack's operator, whose name has a dot, may come by PLAIN.
        """
        if isinstance(login, Token):
            yield from [self._shows(login)] if time.time() < login.expires < FAR else ()
            return
        own = self._client.get("sasl.mechanism", "")
        scram = own if own.startswith("SCRAM") else "SCRAM-SHA-512"
        for mechanism in (scram, "PLAIN") if "." in login.name else (scram,):
            named = dict(zip(PASSWORD, login, strict=True))
            yield {**self._client, **named, "sasl.mechanism": mechanism}

    def _shows(self, token: Token) -> dict[str, Any]:
        """Return librdkafka's properties of a client that shows *token*, where Kafka judges it."""
        client: dict[str, Any] = {name: value for name, value in self._client.items() if name not in PASSWORD}
        if token.issuer == SITE and self._tokens:
            client["bootstrap.servers"] = self._tokens
        shown = (token.text, token.expires, token.name or "?")
        return client | {"sasl.mechanism": "OAUTHBEARER", "oauth_cb": lambda _config: shown}

    def _asked(self, login: Login | Token, operation: AclOperation, topics: list[str]) -> dict[str, bool]:
        for client in self.clients(login):
            if (answers := self._asked_as(client, login, operation, topics)) is not None:
                return answers
        wrong = f"the name {login.name!r} or the password"
        raise NotLetInError(f"{'the token' if isinstance(login, Token) else wrong} is wrong, or has ended")

    def _asked_as(
        self, client: Mapping[str, Any], login: Login | Token, operation: AclOperation, topics: list[str]
    ) -> dict[str, bool] | None:
        """Return Kafka's answers to *login* by *client*; None where it does not let that in."""
        errors: list[int] = []
        heard: dict[str, Any] = {"log_level": 0, "error_cb": lambda error: errors.append(error.code())}
        try:
            admin = AdminClient({**client, **heard})
        except KafkaException:  # librdkafka itself does not take this token
            return None
        asked = {"include_authorized_operations": True, "request_timeout": TIMEOUT}
        named = [topic for topic in topics if topic]
        futures = dict(admin.describe_topics(TopicCollection(named), **asked)) if named else {}
        if len(named) < len(topics):
            futures[""] = admin.describe_cluster(**asked)
        while not all(one.done() for one in futures.values()) and not NOT_IN & set(errors):
            admin.poll(0.05)
        if NOT_IN & set(errors):
            return None
        return {topic: _holds(operation, one, login.name) for topic, one in futures.items()}


def _holds(operation: AclOperation, described: "Future[Any]", name: str) -> bool:
    """Return whether what Kafka *described*, to the user of that *name*, lets him do that.

    Raises:
        KafkaSilentError: Kafka does not say.
    """
    try:
        return operation in (described.result().authorized_operations or ())
    except KafkaException as error:
        if error.args[0].code() in NO_TOPIC:
            return False
        raise KafkaSilentError(f"Kafka does not say what {name} may do: {error.args[0].str()}") from error
