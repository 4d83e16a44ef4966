"""Who may ask the archive: who may read the survey's topic, by Kafka's own word."""

from collections.abc import Sequence

from confluent_kafka.admin import AclOperation  # type: ignore[attr-defined]
from starlette.requests import Request

from nightwire.schemas.serving import KafkaAccess, RefusedError, asking, may
from nightwire.schemas.topics import alerts


async def check_reader(access: KafkaAccess, request: Request, surveys: Sequence[str]) -> None:
    """Do nothing for who may read the alerts of all *surveys*, or where Kafka asks nobody.

    Raises:
        RefusedError: Nobody is named, the password is wrong, or there is no right.
    """
    if (login := asking(access, request)) is None:
        return
    if not surveys:
        await may(access, login, AclOperation.DESCRIBE)  # who says a wrong password is told so here, too
    for survey in surveys:
        if not await may(access, login, AclOperation.READ, alerts(survey)):
            raise RefusedError(403, f"{login.name} has no right to read {alerts(survey)}")
