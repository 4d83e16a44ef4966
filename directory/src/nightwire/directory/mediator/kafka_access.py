"""Kafka, entered by who asks over HTTP; what it refuses, as HTTP says it."""

import re
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from nightwire.core.kafka import answering, identity
from nightwire.schemas.serving import KafkaAccess, Login, RefusedError, Token

Who = Login | Token | None
"""Who asks; None where Kafka asks nobody."""

TIMEOUT = 10.0
"""Longest wait for what Kafka knows of a topic. [s]"""
TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")

STATUS: Mapping[int, int] = {
    KafkaError._AUTHENTICATION: 401,
    KafkaError.SASL_AUTHENTICATION_FAILED: 401,
    KafkaError.TOPIC_AUTHORIZATION_FAILED: 403,
    KafkaError.GROUP_AUTHORIZATION_FAILED: 403,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: 403,
    KafkaError.UNKNOWN_TOPIC_OR_PART: 404,
    KafkaError._UNKNOWN_TOPIC: 404,
    KafkaError._UNKNOWN_PARTITION: 404,
    KafkaError.INCONSISTENT_GROUP_PROTOCOL: 409,
    KafkaError.MSG_SIZE_TOO_LARGE: 413,
    KafkaError.RECORD_LIST_TOO_LARGE: 413,
}
"""HTTP's status of Kafka's errors; of all others it is 503: they may pass."""


def refusal(error: KafkaError, topic: str, group: str = "") -> RefusedError:
    """Return *error* as HTTP says it, with the *topic* or *group* that it is about."""
    about_group = error.code() in (
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.INCONSISTENT_GROUP_PROTOCOL,
    )
    what = f"group {group}" if about_group else f"topic {topic}"
    if (status := STATUS.get(error.code(), 503)) == 401:
        return RefusedError(status, f"{what}: Kafka lets you in no more: the password or token has ended")
    return RefusedError(status, f"{what}: {error.str()}")


def properties_of(access: KafkaAccess, bootstrap: str, who: Who) -> dict[str, Any]:
    """Return librdkafka's properties of a client by which *who* enters Kafka.

    Raises:
        RefusedError: Kafka does not let him in, or does not answer.
    """
    if who is None:
        return {**identity(bootstrap), "bootstrap.servers": bootstrap}
    for client in access.clients(who):
        try:
            answering(client["bootstrap.servers"], client)
        except KafkaException as error:
            if error.args[0].code() == KafkaError._ALL_BROKERS_DOWN:
                raise RefusedError(503, error.args[0].str()) from error
        else:
            return client
    wrong = "the token" if isinstance(who, Token) else f"the name {who.name!r} or the password"
    raise RefusedError(401, f"{wrong} is wrong, or has ended")


def check_topic(client: Any, topic: str) -> None:
    """Check by *client*, a consumer or producer, that there is *topic*.

    Raises:
        RefusedError: There is not, it is kept from us, or Kafka does not answer.
    """
    if not TOPIC.fullmatch(topic):
        raise RefusedError(404, f"{topic[:99]!r} is no name of a topic")
    try:
        error = client.list_topics(topic, timeout=TIMEOUT).topics[topic].error
    except KafkaException as failure:
        raise refusal(failure.args[0], topic) from failure
    if error is not None:
        raise refusal(error, topic)
