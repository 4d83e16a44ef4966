"""Who may ask, list and take out: Kafka's own answer, where it asks for passwords."""

from dataclasses import dataclass

from confluent_kafka.admin import AclOperation  # type: ignore[attr-defined]
from starlette.requests import Request

from nightwire.schemas.serving import KafkaAccess, Login, RefusedError, Token, asking, may
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
        return asking(self.access, request)

    async def may_read(self, request: Request, topic: str = DIRECTORY) -> Login | Token | None:
        """Return who asks, who may read *topic*.

        Raises:
            RefusedError: Nobody is named, the password is wrong, or there is no right.
        """
        login = await self.login(request)
        if login is not None and not await may(self.access, login, AclOperation.READ, topic):
            raise RefusedError(403, f"{login.name} has no right to read {topic}")
        return login

    async def may_write(self, request: Request, topic: str, owner: str | None = None) -> Login | Token | None:
        """Return who asks, who may write *topic*, or is *owner* himself.

        Raises:
            RefusedError: Nobody is named, the password is wrong, or there is no right.
        """
        login = await self.writer(request)
        if login is None or await may(self.access, login, AclOperation.WRITE, topic) or login.name == owner:
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
