"""What a writer needs before its first alert: topics, the schema's id, the topic's format."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaException

from nightwire.core import kafka
from nightwire.core.runtime import find_endpoints
from nightwire.producer.writing.message_format import message_format
from nightwire.schemas import Codec, RegistryAwayError, SchemaRegistry, survey, topics

log = logging.getLogger("nightwire.producer")

WAIT = 5.0
"""How long a writer with a spool waits for Kafka before it goes on without. [s]"""


@dataclass(frozen=True)
class Connection:
    """Where to write, and what.

    Attributes:
        kafka: Kafka's address.
        schema_id: Id of the alerts' schema.
        answers: Whether Kafka does.
    """

    kafka: str
    schema_id: int
    answers: bool


def connect(
    name: str,
    schema: Mapping[str, Any],
    schema_id: int | None,
    where: tuple[str | None, str | None],
    *,
    patient: bool,
) -> Connection:
    """Make the topics of survey *name* and register its *schema*.

    Args:
        name: Survey.
        schema: Of its alerts.
        schema_id: Its id, where the survey gives one.
        where: Kafka's address and the registry's URL, where given.
        patient: Kafka may be away; so may the registry, where there is a *schema_id*.

    Raises:
        NoStackError: There is no Kafka to talk to.
        SchemaError: The registry refuses the schema, or does not answer.
        KafkaException: Kafka does not answer.
    """
    found = find_endpoints(*where)
    answers = make_topics(found.kafka, name, patient=patient)
    try:
        with SchemaRegistry(found.schema_registry) as schemas:
            number = schemas.register(f"{topics.alerts(name)}-value", schema, schema_id=schema_id)
    except RegistryAwayError as error:
        if not patient or schema_id is None:
            raise
        log.warning("the schema is registered at the next start: %s", error)
        number = schema_id
    return Connection(found.kafka, number, answers)


def make_topics(bootstrap: str, name: str, *, patient: bool = False) -> bool:
    """Make the topics that writing alerts of survey *name* needs; return whether Kafka answers.

    Args:
        bootstrap: Kafka's address.
        name: Survey.
        patient: Kafka may be away.

    Raises:
        KafkaException: Kafka refused, or cannot be reached.
    """
    names = (topics.alerts(name), topics.VISITS, topics.ACCOUNTS, topics.DEAD_LETTERS)
    wanted = [topics.settings(topic) for topic in names]
    try:
        kafka.ensure_topics(bootstrap, wanted, **({"timeout": WAIT} if patient else {}))
    except KafkaException as error:
        if not patient:
            raise
        log.warning("Kafka is away, alerts go to the spool: %s", error)
        return False
    return True


def options(found: Connection, name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of an `AlertWriter` of survey *name*."""
    form = topics.settings(topics.alerts(name)).format
    return {
        "producer": kafka.producer(found.kafka),
        "survey": survey(name),
        "codec": Codec(schema),
        "schema_id": found.schema_id,
        "shape": message_format(form, schema, found.schema_id),
    }
