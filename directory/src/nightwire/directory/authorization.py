"""Authentication and authorization of requests, by Kafka's own answer."""

from dataclasses import dataclass

from confluent_kafka.admin import AclOperation  # type: ignore[attr-defined]
from starlette.requests import Request

from nightwire.schemas.serving import KafkaAccess, Login, RefusedError, Token, asking, may
from nightwire.schemas.topics import DIRECTORY


@dataclass(frozen=True)
class Authorizer:
    """Authenticates users, and tells which topics they may read and write, as Kafka does.

    Attributes:
        access: Asks Kafka.
        anonymous_writes: Whether everybody may write where Kafka asks for no passwords.
    """

    access: KafkaAccess
    anonymous_writes: bool = True

    async def login(self, request: Request) -> Login | Token | None:
        """Return the request's credentials; None where Kafka asks for none.

        Raises:
            RefusedError: 401: there are none.
        """
        return asking(self.access, request)

    async def may_read(self, request: Request, topic: str = DIRECTORY) -> Login | Token | None:
        """Return the credentials of a user who may read *topic*.

        Raises:
            RefusedError: There are no credentials, they are wrong, or give no right.
        """
        login = await self.login(request)
        if login is not None and not await may(self.access, login, AclOperation.READ, topic):
            raise RefusedError(403, f"{login.name} has no right to read {topic}")
        return login

    async def may_write(self, request: Request, topic: str, owner: str | None = None) -> Login | Token | None:
        """Return the credentials of a user who may write *topic*, or is *owner*.

        Raises:
            RefusedError: There are no credentials, they are wrong, or give no right.
        """
        login = await self.writer(request)
        if login is None or await may(self.access, login, AclOperation.WRITE, topic) or login.name == owner:
            return login
        raise RefusedError(403, f"{login.name} has no right to write {topic}")

    async def writer(self, request: Request) -> Login | Token | None:
        """Return the credentials of a user whom Kafka may let write; None where it asks for none.

        Raises:
            RefusedError: There are no credentials, or other machines only read.
        """
        if not self.access.demanded and not self.anonymous_writes:
            raise RefusedError(403, "nobody has a password here: other machines only read")
        return await self.login(request)
