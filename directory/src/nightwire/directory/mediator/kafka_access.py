"""Kafka clients with the credentials of HTTP requests; Kafka's errors as HTTP statuses."""

import re
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from nightwire.core.kafka import answering, error_code, error_text, identity
from nightwire.schemas.serving import KafkaAccess, Login, RefusedError, Token

Credentials = Login | Token | None
"""Of a request; None where Kafka asks for none."""

TIMEOUT = 10.0
"""Longest wait for a topic's metadata. [s]"""
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
"""HTTP's status of Kafka's errors; all others are 503: they may pass."""


def kafka_refusal(error: KafkaError, topic: str, group: str = "") -> RefusedError:
    """Return *error* with its HTTP status, naming the *topic* or *group* that it is about."""
    about_group = error.code() in (
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.INCONSISTENT_GROUP_PROTOCOL,
    )
    what = f"group {group}" if about_group else f"topic {topic}"
    if (status := STATUS.get(error.code(), 503)) == 401:
        return RefusedError(status, f"{what}: Kafka lets you in no more: the password or token has ended")
    return RefusedError(status, f"{what}: {error.str()}")


def client_properties(access: KafkaAccess, bootstrap: str, login: Credentials) -> dict[str, Any]:
    """Return librdkafka's properties of a client with the credentials *login*.

    Raises:
        RefusedError: 401: Kafka refuses the credentials; 503: it does not answer.
    """
    if login is None:
        return {**identity(bootstrap), "bootstrap.servers": bootstrap}
    for client in access.clients(login):
        try:
            answering(client["bootstrap.servers"], client)
        except KafkaException as error:
            if error_code(error) == KafkaError._ALL_BROKERS_DOWN:
                raise RefusedError(503, error_text(error)) from error
        else:
            return client
    wrong = "the token" if isinstance(login, Token) else f"the name {login.name!r} or the password"
    raise RefusedError(401, f"{wrong} is wrong, or has ended")


def check_topic(client: Any, topic: str) -> None:
    """Check by *client*, a consumer or producer, that *topic* exists.

    Raises:
        RefusedError: It does not, may not be seen, or Kafka does not answer.
    """
    if not TOPIC.fullmatch(topic):
        raise RefusedError(404, f"{topic[:99]!r} is no name of a topic")
    try:
        error = client.list_topics(topic, timeout=TIMEOUT).topics[topic].error
    except KafkaException as failure:
        raise kafka_refusal(failure.args[0], topic) from failure
    if error is not None:
        raise kafka_refusal(error, topic)
