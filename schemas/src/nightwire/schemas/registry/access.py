"""Who may write to the registry: whoever Kafka lets write to the topic that a subject is of.

A user shows name and password as at Confluent's registry (HTTP's basic authentication), or a token;
they are those with which he enters Kafka, and Kafka itself says what he may do.
"""

from collections.abc import Callable

from confluent_kafka.admin import AclOperation  # type: ignore[attr-defined]

from nightwire.schemas.registry.api import ApiError, Request
from nightwire.schemas.serving import KafkaAccess, KafkaSilentError, NotLetInError, login_of

SUFFIXES = ("-value", "-key")


class WriteAccess(KafkaAccess):
    """Lets write who may write to Kafka."""

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
            raise ApiError(401, "writing needs a name and a password (basic authentication), or a token")
        subject = request.path.get("subject")
        topic = topic_of(subject)
        try:
            allowed = self.may(login, AclOperation.WRITE if topic else AclOperation.ALTER, topic)
        except NotLetInError as error:
            raise ApiError(401, str(error)) from error
        except KafkaSilentError as error:
            raise ApiError(50301, str(error)) from error
        if not allowed:
            named = f"subject {subject!r}" if subject else "what holds for all subjects"
            raise ApiError(40301, f"{login.name} has no right to write {named}")


def topic_of(subject: str | None) -> str:
    """Return the topic that *subject* is of, by Confluent's rule; empty for other subjects."""
    suffix = next((one for one in SUFFIXES if subject and subject.endswith(one)), None)
    return subject.removesuffix(suffix) if subject and suffix else ""
