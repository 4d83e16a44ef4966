"""Connecting a writer: topics are made, the schema is registered, the topic's format is read."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaException

from nightwire.core import kafka
from nightwire.core.channels import ChannelCopies, OneSchema
from nightwire.core.runtime import find_endpoints
from nightwire.producer.writing.message_format import MessageFormat, message_format
from nightwire.schemas import Codec, RegistryAwayError, SchemaRegistry, survey, topics

log = logging.getLogger("nightwire.producer")

WAIT = 5.0
"""How long a writer with a spool waits for Kafka before it goes on without. [s]"""


class SameKafka:
    """Notices when another Kafka has taken the address: the schema's id is not known there.

    Args:
        bootstrap: Kafka's address.
        answers: Whether the first one answers already.
    """

    def __init__(self, bootstrap: str, *, answers: bool) -> None:
        self._bootstrap = bootstrap
        self._first = kafka.cluster_id(bootstrap) if answers else None
        self._doubted = self._first is None

    def doubt(self) -> None:
        """Ask at the next `check`: Kafka was away."""
        self._doubted = True

    def check(self) -> None:
        """Do nothing while Kafka is the first that answered, or away.

        Raises:
            DeliveryError: It is another one, from now on at each call.
        """
        if not self._doubted or (now := kafka.cluster_id(self._bootstrap)) is None:
            return
        self._first = self._first or now
        if now != self._first:
            raise kafka.DeliveryError(
                f"another Kafka has taken {self._bootstrap}, and does not know the schema of what is "
                "written: connect again, and write what is not in it"
            )
        self._doubted = False


@dataclass(frozen=True)
class Connection:
    """A Kafka that is ready for a survey's alerts.

    Attributes:
        kafka: Kafka's address.
        schema_id: Id of the alerts' schema.
        answers: Whether Kafka answers.
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
    may_be_away: bool,
) -> Connection:
    """Make the topics of survey *name* and register its *schema*.

    Args:
        name: Name of the survey.
        schema: Schema of its alerts.
        schema_id: Id of the schema, where the survey gives one.
        where: Kafka's address and the registry's URL, where given.
        may_be_away: Kafka may be away; so may the registry, where there is a *schema_id*.

    Raises:
        NoStackError: There is no Kafka to talk to.
        SchemaError: The registry refuses the schema, or does not answer.
        KafkaException: Kafka does not answer.
    """
    found = find_endpoints(*where)
    answers = make_topics(found.kafka, name, may_be_away=may_be_away)
    try:
        with SchemaRegistry(found.schema_registry, login=kafka.login(found.kafka)) as schemas:
            number = schemas.register(f"{topics.alerts(name)}-value", schema, schema_id=schema_id)
    except RegistryAwayError as error:
        if not may_be_away or schema_id is None:
            raise
        log.warning("the schema is registered at the next start: %s", error)
        number = schema_id
    return Connection(found.kafka, number, answers)


def make_topics(bootstrap: str, name: str, *, may_be_away: bool = False) -> bool:
    """Make the topics that writing alerts of survey *name* needs; return whether Kafka answers.

    Args:
        bootstrap: Kafka's address.
        name: Name of the survey.
        may_be_away: Kafka may be away.

    Raises:
        KafkaException: Kafka refused, or cannot be reached.
    """
    names = (topics.alerts(name), topics.VISITS, topics.ACCOUNTS, topics.DEAD_LETTERS)
    wanted = [topics.settings(topic) for topic in names]
    try:
        kafka.ensure_topics(bootstrap, wanted, **({"timeout": WAIT} if may_be_away else {}))
    except KafkaException as error:
        if not may_be_away:
            raise
        log.warning("Kafka is away, alerts go to the spool: %s", error)
        return False
    return True


def writer_arguments(found: Connection, name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of an `AlertWriter` of survey *name*, but for its options."""
    same = SameKafka(found.kafka, answers=found.answers)
    codec = Codec(schema)
    return {
        "producer": kafka.producer(found.kafka, on_error=same.doubt),
        "check": same.check,
        "survey": survey(name),
        "codec": codec,
        "schema_id": found.schema_id,
        "channels": ChannelCopies(found.kafka, topics.alerts(name), name, OneSchema(codec)),
    }


def topic_format(name: str, schema: Mapping[str, Any], schema_id: int) -> MessageFormat:
    """Return the format that the topic of survey *name* is configured for."""
    return message_format(topics.settings(topics.alerts(name)).format, schema, schema_id)
