"""Who may ask, list and take out: Kafka's own answer, where it asks for passwords."""

from dataclasses import dataclass

from confluent_kafka.admin import AclOperation  # type: ignore[attr-defined]
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from nightwire.schemas.serving import (
    KafkaAccess,
    KafkaSilentError,
    Login,
    NotLetInError,
    RefusedError,
    Token,
    login_of,
)
from nightwire.schemas.topics import DIRECTORY


@dataclass(frozen=True)
class Gate:
    """Lets in whom Kafka lets in.

    Attributes:
        access: Asks Kafka.
        open: Whether everybody may write where Kafka asks nobody who he is.
    """

    access: KafkaAccess
    open: bool = True

    async def login(self, request: Request) -> Login | Token | None:
        """Return who asks; None where Kafka asks nobody.

        Raises:
            RefusedError: 401: nobody is named.
        """
        if not self.access.demanded:
            return None
        if (login := login_of(request.headers.get("Authorization", ""))) is None:
            raise RefusedError(401, "show a name and a password (basic authentication), or a token")
        return login

    async def may_read(self, request: Request, topic: str = DIRECTORY) -> Login | Token | None:
        """Return who asks, who may read *topic*.

        Raises:
            RefusedError: Nobody is named, the password is wrong, or there is no right.
        """
        login = await self.login(request)
        if login is not None and not await self._may(login, AclOperation.READ, topic):
            raise RefusedError(403, f"{login.name} has no right to read {topic}")
        return login

    async def may_write(self, request: Request, topic: str, owner: str | None = None) -> Login | Token | None:
        """Return who asks, who may write *topic*, or is *owner* himself.

        Raises:
            RefusedError: Nobody is named, the password is wrong, or there is no right.
        """
        login = await self.writer(request)
        if login is None or await self._may(login, AclOperation.WRITE, topic) or login.name == owner:
            return login
        raise RefusedError(403, f"{login.name} has no right to write {topic}")

    async def writer(self, request: Request) -> Login | Token | None:
        """Return who asks, who may write if Kafka lets him; None where it asks nobody.

        Raises:
            RefusedError: Nobody is named, or other machines only read.
        """
        if not self.access.demanded and not self.open:
            raise RefusedError(403, "nobody has a password here: other machines only read")
        return await self.login(request)

    async def _may(self, login: Login | Token, operation: AclOperation, topic: str) -> bool:
        try:
            return await run_in_threadpool(self.access.may, login, operation, topic)
        except NotLetInError as error:
            raise RefusedError(401, str(error)) from error
        except KafkaSilentError as error:
            raise RefusedError(503, str(error)) from error
