"""Who may ask the archive: who may read the survey's topic, by Kafka's own word."""

from collections.abc import Iterable

from confluent_kafka.admin import AclOperation  # type: ignore[attr-defined]
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from nightwire.schemas.serving import KafkaAccess, KafkaSilentError, NotLetInError, RefusedError, login_of
from nightwire.schemas.topics import alerts


async def check_reader(access: KafkaAccess, request: Request, surveys: Iterable[str]) -> None:
    """Do nothing for who may read the alerts of all *surveys*, or where Kafka asks nobody.

    Raises:
        RefusedError: Nobody is named, the password is wrong, or there is no right.
    """
    if not access.demanded:
        return
    if (login := login_of(request.headers.get("Authorization", ""))) is None:
        raise RefusedError(401, "show a name and a password (basic authentication), or a token")
    for survey in surveys:
        try:
            allowed = await run_in_threadpool(access.may, login, AclOperation.READ, alerts(survey))
        except NotLetInError as error:
            raise RefusedError(401, str(error)) from error
        except KafkaSilentError as error:
            raise RefusedError(503, str(error)) from error
        if not allowed:
            raise RefusedError(403, f"{login.name} has no right to read {alerts(survey)}")
