"""Who may see what, by Kafka's own answer; what strangers see; limits of rates."""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

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
from nightwire.schemas.topics import VOEVENTS

MOST_KNOWN = 10_000
"""Most addresses whose rates are remembered."""


@dataclass(frozen=True)
class Gate:
    """Lets in whom Kafka lets in.

    Attributes:
        access: Asks Kafka.
        public: Whether who shows no name sees the surveys' alerts and the VOEvents.
    """

    access: KafkaAccess
    public: bool = False

    async def visible(self, http: Request, topics: Iterable[str]) -> frozenset[str]:
        """Return those of *topics* that who asks may read.

        Raises:
            RefusedError: He shows no name where one is wanted, or a wrong password; or Kafka does
                not say.
        """
        if not self.access.demanded:
            return frozenset(topics)
        login = login_of(http.headers.get("Authorization", ""))
        if login is None and self.public:
            return frozenset(topic for topic in topics if topic == VOEVENTS or topic.startswith("alerts."))
        if login is None:
            raise RefusedError(401, "show a name and a password (basic authentication), or a token")
        return await run_in_threadpool(self._readable, login, list(topics))

    def _readable(self, login: Login | Token, topics: list[str]) -> frozenset[str]:
        try:
            return frozenset(topic for topic in topics if self.access.may(login, AclOperation.READ, topic))
        except NotLetInError as error:
            raise RefusedError(401, str(error)) from error
        except KafkaSilentError as error:
            raise RefusedError(503, str(error)) from error


@dataclass
class RateLimit:
    """A bucket of tokens for each address: a page with a hundred stamps fits in at once.

    Attributes:
        rate: Requests that an address may make, on the average. [1/s]
        burst: And at once.
        clock: Gives the time. [s, any steady clock]
    """

    rate: float = 60.0
    burst: float = 600.0
    clock: Callable[[], float] = time.monotonic
    _left: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)

    def check(self, http: Request) -> None:
        """Take a token of who asks.

        Raises:
            RefusedError: 429: there is none left.
        """
        address, now = http.client.host if http.client else "", self.clock()
        left, since = self._left.pop(address, (self.burst, now))
        left = min(self.burst, left + (now - since) * self.rate)
        self._left[address] = max(0.0, left - 1), now
        if len(self._left) > MOST_KNOWN:
            self._left.popitem(last=False)
        if left < 1:
            raise RefusedError(429, "too many requests from this address; wait a few seconds")
