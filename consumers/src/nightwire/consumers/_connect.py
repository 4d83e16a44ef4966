"""From what was asked for to an open reader: clients of Kafka and of the schema registry."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nightwire.consumers._decoding import ALERTS, known_survey
from nightwire.consumers._group import GroupSource, membership
from nightwire.consumers._parcel import Fresh, Tools
from nightwire.consumers._plan import Plan
from nightwire.consumers._reading import Reading, Rules, Tally
from nightwire.consumers._source import Source
from nightwire.consumers._version import schema_for
from nightwire.consumers._visit import VisitLog, VisitSource, survey_in
from nightwire.core.endpoints import Endpoints
from nightwire.core.kafka import consumer, properties
from nightwire.schemas import AlertDecoder, SchemaRegistry


@dataclass(frozen=True)
class Order:
    """What a reader was asked for.

    Attributes:
        plan: What to read, and from where.
        endpoints: Where Kafka and the registry are.
        rules: When to end.
        survey: The survey of all alerts, where no header and no topic tells.
        as_version: The version that alerts are to look like; None leaves each as it was written.
        commit_interval: Time between a group's commits. [s]
    """

    plan: Plan
    endpoints: Endpoints
    rules: Rules
    survey: str | None
    as_version: int | str | Mapping[str, Any] | None
    commit_interval: float


@dataclass(frozen=True)
class Connection:
    """An open reader."""

    reading: Reading
    tools: Tools
    registry: SchemaRegistry

    def close(self) -> None:
        """Commit what is done, and leave."""
        self.reading.source.close()
        self.registry.close()


def connect(order: Order, tally: Tally, fresh: Fresh) -> Connection:
    """Connect, and find where to begin.

    Raises:
        TopicError: A topic or a visit does not exist.
        SchemaError: The version that was asked for cannot be had.
        KafkaException: Kafka cannot be reached.
    """
    registry = SchemaRegistry(order.endpoints.schema_registry)
    try:
        tools = Tools(_decoder(order, registry), order.survey, fresh)
        source = _source(order)
    except BaseException:
        registry.close()
        raise
    return Connection(Reading(source, order.rules, tally, fresh), tools, registry)


def _decoder(order: Order, registry: SchemaRegistry) -> AlertDecoder:
    if order.as_version is None:
        return AlertDecoder(registry)
    reader = schema_for(order.as_version, registry.schema)
    described = known_survey(order.survey or _only_survey(order.plan))
    return AlertDecoder(registry, reader=reader, survey=described.name if described else None)


def _only_survey(plan: Plan) -> str | None:
    """Return the survey that all topics name, if it is one."""
    named = {topic.removeprefix(ALERTS) if topic.startswith(ALERTS) else None for topic in plan.topics}
    return named.pop() if len(named) == 1 else None


def _source(order: Order) -> Source:
    plan, bootstrap = order.plan, order.endpoints.kafka
    how = membership(plan.member, properties()) if plan.group else {}
    log = VisitLog(bootstrap, survey_in(plan, order.survey)) if plan.visit is not None else None
    client = consumer(bootstrap, group=plan.group, enable_partition_eof=True, **how)
    source = (
        VisitSource(client, plan, log)
        if log is not None
        else GroupSource(client, plan, commit_interval=order.commit_interval)
        if plan.group
        else Source(client, plan)
    )
    try:
        source.open()
    except BaseException:
        source.close()
        raise
    return source
