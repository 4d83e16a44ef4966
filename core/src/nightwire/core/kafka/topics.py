"""Topics: made where they are missing, and kept as the surveys and a file of changes say."""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from nightwire.core.kafka.clients import admin, consumer, error_code
from nightwire.core.kafka.offsets import end_offsets
from nightwire.core.kafka.topic_plan import Action, Step, TopicState, plan
from nightwire.schemas import surveys
from nightwire.schemas.topics import (
    COMPACTED,
    DEAD_LETTERS,
    VOEVENTS,
    Changes,
    TopicSettings,
    alerts,
    settings,
)

TOPICS_A_REQUEST = 500
"""Topics made by one request: Kafka's controller writes it as one batch of <= 10,000 records."""
PATIENCE = 30.0
"""Longest wait for an answer. [s]"""
OPERATIONS = {Action.SET: AlterConfigOpType.SET, Action.RESET: AlterConfigOpType.DELETE}


def ensure_topics(bootstrap: str, topics: Sequence[TopicSettings], *, timeout: float = 30.0) -> None:
    """Create those of *topics* that are missing, and wait until they have leaders.

    Args:
        bootstrap: ``HOST:PORT[,HOST:PORT…]`` of a real Kafka.
        topics: Name, partitions and configuration of each.
        timeout: Longest wait. [s]

    Raises:
        KafkaException: Kafka refused one, or could not be reached.
    """
    client = admin(bootstrap)
    existing = client.list_topics(timeout=timeout).topics
    missing = [item for item in topics if item.name not in existing]
    for first in range(0, len(missing), TOPICS_A_REQUEST):
        _create(client, missing[first : first + TOPICS_A_REQUEST], timeout)
    _await_leaders(client, [item.name for item in missing], timeout)


def _create(client: AdminClient, topics: Sequence[TopicSettings], timeout: float) -> None:
    """Create *topics*; another process may have made some meanwhile."""
    wanted = [
        NewTopic(
            item.name,
            num_partitions=item.partitions,
            replication_factor=item.replication or -1,
            config=dict(item.config),
        )
        for item in topics
    ]
    for future in client.create_topics(wanted, operation_timeout=timeout).values():
        try:
            future.result(timeout)
        except KafkaException as error:
            if error_code(error) != KafkaError.TOPIC_ALREADY_EXISTS:
                raise


def _await_leaders(client: AdminClient, names: Sequence[str], timeout: float) -> None:
    deadline = time.monotonic() + timeout
    pending = set(names)
    while pending and time.monotonic() < deadline:
        known = client.list_topics(timeout=timeout).topics
        pending = {
            name
            for name in pending
            if name not in known or any(part.leader < 0 for part in known[name].partitions.values())
        }
        if pending:
            client.poll(0.05)


def wanted_topics(changes: Changes) -> list[TopicSettings]:
    """Return the topics of every stack, those of the surveys, and those that *changes* name.

    Raises:
        NameError_: A name is not one of our topics.
        SchemaError: The changes ask for something impossible.
    """
    names = {*COMPACTED, VOEVENTS, DEAD_LETTERS, *map(alerts, surveys()), *changes}
    return [settings(name, changes) for name in sorted(names)]


def compare(bootstrap: str, wanted: Sequence[TopicSettings], *, break_order: bool) -> list[Step]:
    """Return the differences between the topics of a real Kafka and *wanted*.

    Args:
        bootstrap: Kafka's address.
        wanted: The topics as they should be.
        break_order: Partitions may be added to topics with records.

    Raises:
        KafkaException: Kafka refused, or cannot be reached.
    """
    with consumer(bootstrap) as reader:
        return plan(wanted, _state(admin(bootstrap), reader, wanted), break_order=break_order)


def apply(bootstrap: str, wanted: Sequence[TopicSettings], steps: Iterable[Step]) -> None:
    """Carry out *steps*, which `compare` found for *wanted*, but for those that are refused.

    Raises:
        KafkaException: Kafka refused one, or cannot be reached.
    """
    client = admin(bootstrap)
    todo = list(steps)
    made = {step.topic for step in todo if step.action is Action.CREATE}
    ensure_topics(bootstrap, [one for one in wanted if one.name in made])
    grown = [NewPartitions(step.topic, int(step.wanted)) for step in todo if step.action is Action.ADD]
    changed = _resources([step for step in todo if step.action in OPERATIONS])
    futures = [
        *(client.create_partitions(grown) if grown else {}).values(),
        *(client.incremental_alter_configs(changed) if changed else {}).values(),
    ]
    for future in futures:
        future.result(PATIENCE)


def _resources(steps: Iterable[Step]) -> list[ConfigResource]:
    entries: dict[str, list[ConfigEntry]] = {}
    for step in steps:
        operation = OPERATIONS[step.action]
        entry = ConfigEntry(step.setting, step.wanted, incremental_operation=operation)
        entries.setdefault(step.topic, []).append(entry)
    return [
        ConfigResource(ResourceType.TOPIC, topic, incremental_configs=found)
        for topic, found in entries.items()
    ]


def _state(client: AdminClient, reader: Consumer, wanted: Sequence[TopicSettings]) -> dict[str, TopicState]:
    known = client.list_topics(timeout=PATIENCE).topics
    names = [one.name for one in wanted if one.name in known]
    filled = {topic for topic, _part in end_offsets(reader, names)}
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    answers = client.describe_configs(resources) if resources else {}
    configs = {resource.name: future.result(PATIENCE) for resource, future in answers.items()}
    return {name: _topic_state(known[name].partitions, configs[name], name in filled) for name in names}


def _topic_state(
    partitions: Mapping[int, Any], config: Mapping[str, ConfigEntry], has_records: bool
) -> TopicState:
    own = ConfigSource.DYNAMIC_TOPIC_CONFIG
    return TopicState(
        partitions=len(partitions),
        replication=min(len(part.replicas) for part in partitions.values()),
        config={name: str(entry.value) for name, entry in config.items()},
        own=frozenset(name for name, entry in config.items() if ConfigSource(entry.source) is own),
        has_records=has_records,
    )
