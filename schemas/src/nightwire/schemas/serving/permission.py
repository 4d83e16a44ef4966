"""Who asks over HTTP, and what Kafka says that he may: refusals where it does not."""

from collections.abc import Callable
from typing import TypeVar

from confluent_kafka.admin import AclOperation  # type: ignore[attr-defined]
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from nightwire.schemas.serving.kafka_access import KafkaAccess, KafkaSilentError, NotLetInError
from nightwire.schemas.serving.logins import Login, Token, login_of
from nightwire.schemas.serving.requests import RefusedError

Answer = TypeVar("Answer")


def asking(access: KafkaAccess, http: Request) -> Login | Token | None:
    """Return who asks; None where Kafka asks nobody.

    Raises:
        RefusedError: 401: nobody is named.
    """
    if not access.demanded:
        return None
    if (login := login_of(http.headers.get("Authorization", ""))) is None:
        raise RefusedError(401, "show a name and a password (basic authentication), or a token")
    return login


async def may(access: KafkaAccess, login: Login | Token, operation: AclOperation, topic: str = "") -> bool:
    """Return whether Kafka lets *login* do that with *topic*; without one, with the cluster.

    Raises:
        RefusedError: 401: the password is wrong; 503: Kafka does not say.
    """
    return await answered(access.may, login, operation, topic)


async def answered(ask: Callable[..., Answer], *asked: object) -> Answer:
    """Return what *ask*, a question of `KafkaAccess`, answers.

    Raises:
        RefusedError: 401: the password is wrong; 503: Kafka does not say.
    """
    try:
        return await run_in_threadpool(ask, *asked)
    except NotLetInError as error:
        raise RefusedError(401, str(error)) from error
    except KafkaSilentError as error:
        raise RefusedError(503, str(error)) from error
