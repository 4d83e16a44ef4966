"""Kafka clients with the settings that decide "nothing lost", and which errors pass by themselves.

Settings and their reasons: acks=all and idempotence lose and double nothing on a retry; the
partitioner is Java's, so that Python and Java put one key in one partition; a reader whose offset
was deleted gets an error instead of being moved to the end.
"""

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from nightwire.core.runtime import Stop, stack_credentials
from nightwire.schemas.kafka_environment import properties

log = logging.getLogger("nightwire.kafka")

Answer = TypeVar("Answer")

MAX_MESSAGE = 4 << 20
"""Largest record on alert and event topics. [byte]  Real Rubin alerts reach 300 kB."""


def _log_fatal(error: KafkaError) -> None:
    """Log that a client is lost.

    Without this callback, confluent-kafka raises a fatal `KafkaError` out of any call: it is no
    exception, so nothing catches it.  The call that fails for it raises `KafkaException`.
    """
    if error.fatal():
        log.error("Kafka client lost: %s", error.str())


COMMON: dict[str, Any] = {
    "error_cb": _log_fatal,
    "reconnect.backoff.max.ms": 500,  # a broker that returns is found again at once
    "socket.keepalive.enable": True,
    "message.max.bytes": MAX_MESSAGE,
    "log_level": 2,  # what fails is raised; librdkafka's own lines would only double it
}
PRODUCER: dict[str, Any] = COMMON | {
    "acks": "all",
    "enable.idempotence": True,
    "partitioner": "murmur2_random",
    "compression.type": "lz4",  # see docs/decisions/0007
    "linger.ms": 5,
    "batch.size": 1 << 20,
    "queue.buffering.max.kbytes": 64 << 10,
    "delivery.timeout.ms": 120_000,  # longer than the restart of a single broker
}
CONSUMER: dict[str, Any] = COMMON | {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "fetch.queue.backoff.ms": 5,
    "queued.max.messages.kbytes": 64 << 10,
    "fetch.wait.max.ms": 100,
}

TRANSIENT_ERRORS = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TIMED_OUT,
        KafkaError._RESOLVE,
        KafkaError._DESTROY_BROKER,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
    }
)
"""Errors while Kafka is away, from which librdkafka recovers by itself.
(``KafkaError.retriable`` speaks of transactions alone.)"""

REFUSALS = frozenset(
    {
        KafkaError._AUTHENTICATION,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    }
)
"""Errors that asking again does not mend: a wrong password, a missing right."""

STARTUP_ERRORS = TRANSIENT_ERRORS | {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION}
"""Those, and the errors of a topic that is new, or whose leader was just away."""


def error_text(error: KafkaException) -> str:
    """Return what librdkafka says of *error*."""
    return str(error.args[0].str())


def error_code(error: KafkaException) -> int:
    """Return the code of *error*, a constant of `KafkaError`."""
    return int(error.args[0].code())


class Principal(NamedTuple):
    """A user of Kafka's: his name, and librdkafka's properties of a client by which he enters."""

    name: str
    client: Mapping[str, Any]


_SPEAKER: ContextVar[Principal | None] = ContextVar("speaker", default=None)


@contextmanager
def speaking_for(one: Principal) -> Iterator[None]:
    """Let all clients that are made in the block, in this thread, enter Kafka as somebody else."""
    before = _SPEAKER.set(one)
    try:
        yield
    finally:
        _SPEAKER.reset(before)


def speaker() -> str:
    """Return for whom this thread speaks with Kafka; empty: for this process itself."""
    one = _SPEAKER.get()
    return one.name if one else ""


def identity(bootstrap: str) -> dict[str, Any]:
    """Return the properties by which we enter: those of whom we speak for, else ``KAFKA_*``.

    Without a user there, the embedded stack's credentials.

    Args:
        bootstrap: ``HOST:PORT[,HOST:PORT…]``; the stack's are given to its own Kafka alone.
    """
    if (one := _SPEAKER.get()) is not None:
        return dict(one.client)
    known = properties()
    named = any(name.startswith(("sasl.", "security.")) for name in known)
    return known if named else stack_credentials(bootstrap) | known


def asks_for_passwords(bootstrap: str) -> bool:
    """Return whether we enter this Kafka with a name and a password, or a token."""
    return str(identity(bootstrap).get("security.protocol", "")).upper().startswith("SASL")


def principal(bootstrap: str) -> str:
    """Return our user name at the Kafka at *bootstrap*; empty where none is set."""
    known = identity(bootstrap)
    return str(known.get("sasl.username", "")) or (speaker() if known else "")


def login(bootstrap: str) -> tuple[str, str] | None:
    """Return our name and password at the Kafka at *bootstrap*, which its registry asks for too."""
    known = identity(bootstrap)
    name, password = known.get("sasl.username"), known.get("sasl.password")
    return (name, password) if name and password else None


def shown_token(bootstrap: str) -> str:
    """Return the token by which those enter for whom we speak; empty where they have a password."""
    shows = identity(bootstrap).get("oauth_cb")
    return str(shows("")[0]) if shows else ""


def producer(
    bootstrap: str,
    *,
    on_error: Callable[[], None] = lambda: None,
    client: Mapping[str, Any] | None = None,
    **overrides: Any,
) -> Producer:
    """Return a producer that loses nothing: acks=all, idempotent, Java's partitioner.

    Args:
        bootstrap: ``HOST:PORT[,HOST:PORT…]``.
        on_error: Called, in a poll, for errors that librdkafka goes on after: Kafka was away.
        client: As for `consumer`.
        overrides: librdkafka properties with ``_`` for ``.``, such as ``linger_ms=0``.
    """
    told = _telling(on_error) | dict(identity(bootstrap) if client is None else client)
    return Producer(PRODUCER | told | {"bootstrap.servers": bootstrap} | _dotted(overrides))


def fenced_producer(
    bootstrap: str, name: str, *, longest_ms: int, patience: float | None = None, **more: Any
) -> Producer:
    """Return the producer of transactions *name*; who had that name before is fenced off.

    Args:
        bootstrap: As for `producer`.
        name: The transactional id.
        longest_ms: After a crash, how long until Kafka drops what was half written. [ms]
        patience: Longest wait for Kafka; None where the caller calls `init_transactions`. [s]
        more: What `producer` takes.

    Raises:
        KafkaException: Kafka does not answer, or refuses.
    """
    times: dict[str, Any] = {"transaction_timeout_ms": longest_ms, "delivery_timeout_ms": longest_ms}
    made = producer(bootstrap, transactional_id=name, **times, **more)
    if patience is not None:
        made.list_topics(timeout=patience)  # without a connection it would ask again after half a second
        made.init_transactions(patience)
    return made


def consumer(
    bootstrap: str,
    *,
    group: str | None = None,
    on_error: Callable[[], None] = lambda: None,
    client: Mapping[str, Any] | None = None,
    **overrides: Any,
) -> Consumer:
    """Return a consumer that never commits or skips by itself.

    Args:
        bootstrap: ``HOST:PORT[,HOST:PORT…]``.
        group: Consumer group; without one, read by assignment, in a group that our rights cover.
        on_error: Called, in a poll, for errors that librdkafka goes on after: Kafka was away.
        client: librdkafka's properties of who comes; None for ourselves.  Another site's Kafka is
            never shown our own.
        overrides: librdkafka properties with ``_`` for ``.``.
    """
    known = identity(bootstrap) if client is None else client
    group = group or _default_group(
        principal(bootstrap) if client is None else client.get("sasl.username", "")
    )
    told = _telling(on_error) | dict(known)
    return RaisingConsumer(
        CONSUMER | told | {"bootstrap.servers": bootstrap, "group.id": group} | _dotted(overrides)
    )


class RaisingConsumer(Consumer):
    """A consumer that raises what its callbacks of a rebalance raise.

    confluent-kafka gives an error of its own calls within them as a `KafkaError`, which is no
    exception: nothing catches it, and a thread ends of it without a word.
    """

    def subscribe(self, *topics: Any, **callbacks: Any) -> None:
        """Subscribe to *topics*; *callbacks* as `Consumer.subscribe` takes them."""
        given: dict[str, Any] = {name: _raising(one) for name, one in callbacks.items()}
        super().subscribe(*topics, **given)


def _raising(callback: Callable[..., None]) -> Callable[..., None]:
    def called(*given: Any) -> None:
        try:
            callback(*given)
        except KafkaException:  # noqa: TRY203  (caught once, it is an exception)
            raise

    return called


def _telling(on_error: Callable[[], None]) -> dict[str, Any]:
    """Return the property by which a client calls *on_error*."""

    def heard(error: KafkaError) -> None:
        _log_fatal(error)
        on_error()

    return {"error_cb": heard}


def _default_group(user: str) -> str:
    """Return a group for readers by assignment: librdkafka looks for a coordinator all the same."""
    return f"{user}.reader-{os.getpid()}" if user else f"nightwire-{os.getpid()}"


def admin(bootstrap: str, *, client: Mapping[str, Any] | None = None) -> AdminClient:
    """Return an admin client for *bootstrap*; *client* as in `consumer`."""
    known = identity(bootstrap) if client is None else client
    return AdminClient(COMMON | dict(known) | {"bootstrap.servers": bootstrap})


def cluster_id(bootstrap: str) -> str | None:
    """Return the id of the Kafka at *bootstrap*; None while it does not answer."""
    try:
        return admin(bootstrap).list_topics(timeout=5).cluster_id
    except KafkaException:
        return None


def _dotted(overrides: Mapping[str, Any]) -> dict[str, Any]:
    return {name.replace("_", "."): value for name, value in overrides.items()}


def retry_while_unavailable(
    request: Callable[[], Answer], *, patience: float = 10.0, stop: Stop | None = None
) -> Answer:
    """Return the answer to *request*, made again while Kafka is away or a topic too new.

    Args:
        request: Asks Kafka.
        patience: How long to ask again. [s]
        stop: Ends that early.  With it, as when a process starts, every error of Kafka's is logged
            and the request made again a second later: a cluster may be there in part.  But for
            refusals: those are raised at once.

    Raises:
        KafkaException: Kafka refuses, or does not answer for so long.
    """
    deadline = time.monotonic() + patience
    while True:
        try:
            return request()
        except KafkaException as error:
            if time.monotonic() > deadline or error_code(error) in REFUSALS:
                raise
            if stop is not None:
                log.warning("Kafka does not answer: %s", error)
                if stop.wait(1.0):
                    raise
            elif error_code(error) not in STARTUP_ERRORS:
                raise
            else:
                time.sleep(0.1)
