"""Owners of filters, whose requests enter Kafka by their own name and rights."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from confluent_kafka import KafkaException

from nightwire.core.kafka import (
    REFUSALS,
    DeliveryError,
    Principal,
    error_code,
    error_text,
    identity,
    speaking_for,
)
from nightwire.filters.authoring import NoAnswerError
from nightwire.schemas.serving import KafkaAccess, Login, RefusedError, Token

CREDENTIALS = ("sasl.", "ssl.key", "ssl.certificate", "ssl.keystore")
"""Prefixes of librdkafka's properties for authentication."""
Asked = ParamSpec("Asked")
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Owner:
    """An owner of filters.

    Attributes:
        name: His name.
        bootstrap: Kafka's address, for him.
        client: librdkafka's properties for his authentication; empty where Kafka demands none.
        token: In place of a password: its text, expiry [s since 1970] and principal.
    """

    name: str
    bootstrap: str
    client: dict[str, str]
    token: tuple[str, float, str] | None = None

    @classmethod
    def of(cls, login: Login | Token, access: KafkaAccess, bootstrap: str) -> "Owner":
        """Return the owner with credentials *login* at the Kafka at *bootstrap*.

        Raises:
            RefusedError: 403: that Kafka knows the portal alone, which lends nobody its own name;
                401: a token that has ended, after Kafka took it.
        """
        if not access.demanded:
            own = identity(bootstrap)
            if any(name.startswith(CREDENTIALS) for name in own):
                raise RefusedError(403, "this portal cannot tell owners apart: give it a name and a password")
            return cls(login.name, bootstrap, own)
        if not (clients := [*access.clients(login)]):
            raise RefusedError(401, "the token has ended")
        client = clients[-1]
        texts = {name: value for name, value in client.items() if name != "oauth_cb"}
        shown = (login.text, login.expires, login.name) if isinstance(login, Token) else None
        return cls(login.name, texts.pop("bootstrap.servers", bootstrap), texts, shown)

    def ask(self, question: Callable[Asked, Answer], *asked: Asked.args, **named: Asked.kwargs) -> Answer:
        """Return what *question* returns with Kafka clients that have this owner's rights.

        Raises:
            RefusedError: Kafka refuses the owner; or it, or the engine, does not answer.
        """
        try:
            with speaking_for(self._principal()):
                return question(*asked, **named)
        except KafkaException as error:
            refused = error_code(error) in REFUSALS
            says = "refuses" if refused else "does not answer"
            raise RefusedError(403 if refused else 503, f"Kafka {says}: {error_text(error)}") from error
        except (DeliveryError, NoAnswerError) as error:
            raise RefusedError(503, str(error)) from error

    def _principal(self) -> Principal:
        # a tuple is what librdkafka's binding wants, and JSON made it a list for a trial's process
        shown: dict[str, Any] = {"oauth_cb": lambda _config: tuple(self.token)} if self.token else {}
        return Principal(self.name, {**self.client, **shown})
