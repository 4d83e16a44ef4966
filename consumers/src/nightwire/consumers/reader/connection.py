"""From what was asked for to an open reader: clients of Kafka and of the schema registry."""

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from confluent_kafka import Consumer

from nightwire.consumers.alert import Deduplicator, known_survey
from nightwire.consumers.reader.batch import DecodingContext
from nightwire.consumers.reader.offers import tell_of_offers
from nightwire.consumers.reader.read_loop import ReadCounts, ReadLoop, ReadPolicy
from nightwire.consumers.reader.record_filter import RecordFilter, check_fields
from nightwire.consumers.source import (
    AnyListener,
    ArchivedSource,
    AutoGroup,
    ChannelListener,
    ChosenGroupSource,
    ChosenSource,
    GroupChoice,
    GroupSource,
    InProcessListener,
    Listener,
    MulticastGroupSource,
    MulticastSource,
    Plan,
    RecordSource,
    SlowLinkSource,
    TopicError,
    VisitLog,
    VisitSource,
    membership,
    survey_in,
)
from nightwire.core.channels import LOCAL_DELIVERY
from nightwire.core.kafka import RecordFetcher, cluster_id, consumer, enter, login, properties
from nightwire.core.presence import ArchiveClient
from nightwire.core.runtime import Endpoints
from nightwire.core.subscriptions import InterestError, Registrar
from nightwire.schemas import AlertDecoder, Columns, SchemaError, SchemaRegistry
from nightwire.schemas.topics import named_survey

log = logging.getLogger("nightwire.consumers")

VERSION = re.compile(r"(\d+)\.(\d+)")
FETCH_BYTES = 8 << 20
"""What Kafka sends at once where a reader lets it gather; no more than of one partition, so that
who is behind never waits."""


@dataclass(frozen=True)
class ReadRequest:
    """What a reader was asked for.

    Attributes:
        plan: What to read, and from where.
        endpoints: Where Kafka and the registry are.
        policy: When to end.
        survey: The survey of all alerts, where neither a header nor the topic's name has it.
        as_version: The version that alerts are to look like; None leaves each as it was written.
        commit_interval: Time between a group's commits. [s]
        where: Condition on alerts; None lets all pass.
        announce: Whether the subscription is told to others.
        channel: Whether a derived channel that covers *where* may be read.
        fetch_wait: How long Kafka may gather what it sends. [s]
    """

    plan: Plan
    endpoints: Endpoints
    policy: ReadPolicy
    survey: str | None
    as_version: int | str | Mapping[str, Any] | None
    commit_interval: float
    where: str | None = None
    announce: bool = False
    channel: bool = True
    fetch_wait: float = 0.0


@dataclass(frozen=True)
class Connection:
    """An open reader."""

    loop: ReadLoop
    context: DecodingContext
    registry: SchemaRegistry
    registrar: Registrar | None = None

    def close(self) -> None:
        """Commit what is done, and leave."""
        with ExitStack() as exits:  # what is done is committed first: nobody waits for a directory
            if self.registrar is not None:
                exits.callback(self.registrar.close)
            exits.callback(self.registry.close)
            exits.callback(self.loop.source.close)


def connect(request: ReadRequest, counts: ReadCounts, deduplicator: Deduplicator) -> Connection:
    """Connect, and find where to begin.

    Raises:
        TopicError: A topic or a visit does not exist.
        SchemaError: The version that was asked for cannot be had.
        ValueError: The condition asks for a field that no alert has.
        KafkaException: Kafka cannot be reached.
    """
    ends = request.endpoints
    if request.plan.slow_link is None:
        enter(ends.kafka)
        registry = SchemaRegistry(ends.schema_registry, cluster_id=partial(cluster_id, ends.kafka))
    else:  # Kafka may be out of reach
        registry = SchemaRegistry(ends.schema_registry)
    try:
        decoder = _decoder(request, registry)
        no_rows = partial(_no_rows, request, registry, decoder)
        context = DecodingContext(decoder, request.survey, deduplicator, no_rows)
        where, of_survey = request.where, request.survey
        if where is not None:
            check_fields(where, request.plan.topics, registry)
            if request.announce:
                tell_of_offers(ends.kafka, request.plan.topics, where, of_survey)
        record_filter = None if where is None else RecordFilter(where, AlertDecoder(registry), of_survey)
        source = _source(request, registry)
    except BaseException:
        registry.close()
        raise
    loop = ReadLoop(source, request.policy, counts, deduplicator, record_filter)
    found = Connection(loop, context, registry)
    try:
        return replace(found, registrar=_registrar(request)) if request.announce else found
    except BaseException:
        found.close()
        raise


def _registrar(request: ReadRequest) -> Registrar:
    """Tell others what is read here."""
    registrar = Registrar(request.endpoints.kafka)
    registrar.start()
    for topic in request.plan.topics:
        try:
            registrar.subscribe(f"{topic}.{registrar.instance[:8]}", topic, request.where or "TRUE")
        except InterestError as error:
            log.warning("others do not see what is read of %s: %s", topic, error)
    return registrar


def _decoder(request: ReadRequest, registry: SchemaRegistry) -> AlertDecoder:
    if request.as_version is None:
        return AlertDecoder(registry)
    reader = schema_for(request.as_version, registry.schema)
    described = known_survey(request.survey or _only_survey(request.plan))
    return AlertDecoder(registry, reader=reader, survey=described.name if described else None)


def _no_rows(
    request: ReadRequest, registry: SchemaRegistry, decoder: AlertDecoder, fields: Sequence[str]
) -> Columns:
    """Return *fields* without rows, of the types in the topic's newest schema, if it is known."""
    if request.as_version is None and request.plan.topics:
        with suppress(SchemaError):
            newest = registry.latest(f"{request.plan.topics[0]}-value")[2]
            decoder = AlertDecoder(registry, reader=newest)
    return decoder.columns([], fields, missing_ok=True)


def _only_survey(plan: Plan) -> str | None:
    """Return the survey that all topics name, if it is one."""
    named = {named_survey(topic) for topic in plan.topics}
    return named.pop() if len(named) == 1 else None


def _source(request: ReadRequest, registry: SchemaRegistry) -> RecordSource:
    plan, bootstrap = request.plan, request.endpoints.kafka
    if plan.slow_link is not None:
        if request.endpoints.directory is None:
            raise TopicError(
                "a slow link is read from a directory, and none is named: NIGHTWIRE_DIRECTORY=URL"
            )
        return SlowLinkSource(request.endpoints.directory, plan, login(bootstrap))
    how = membership(plan.member, properties()) if plan.group else {}
    if request.fetch_wait:
        size = {"fetch_min_bytes": FETCH_BYTES, "fetch_message_max_bytes": FETCH_BYTES}
        how = {**how, **size, "fetch_wait_max_ms": int(1000 * request.fetch_wait)}
    source: RecordSource
    log = VisitLog(bootstrap, survey_in(plan, request.survey)) if plan.visit is not None else None
    client = consumer(bootstrap, group=plan.group, on_error=registry.doubt, enable_partition_eof=True, **how)
    if (listener := _listener_of(request)) is not None:
        source = _by_listener(client, request, listener, AlertDecoder(registry))
    else:
        source = VisitSource(client, plan, log) if log else _unbounded(client, request)
    try:
        source.open()
    except BaseException:
        source.close()
        raise
    return source


def _listener_of(request: ReadRequest) -> AnyListener | None:
    """Return what hears the topics by another way, where there may be one."""
    plan, ends = request.plan, request.endpoints
    if isinstance(plan.multicast, AutoGroup):
        of = {topic: request.survey or named_survey(topic) or topic for topic in plan.topics}
        choice = GroupChoice(ends.kafka, of, request.where, plan.multicast.interface)
        return Listener(None, ends.kafka, plan.topics, choice)
    if plan.multicast:
        return Listener(plan.multicast, ends.kafka, plan.topics)
    past = plan.since is not None and plan.group is None and ends.archive is not None
    live = plan.follow and plan.visit is None and plan.choose is None and not past
    if live and plan.topics and all(LOCAL_DELIVERY.writes(ends.kafka, topic) for topic in plan.topics):
        return InProcessListener(ends.kafka, plan.topics)
    if request.where is None or not (request.channel and live):
        return None
    ours = request.survey or ""
    named = {topic: known_survey(named_survey(topic)) for topic in plan.topics}
    surveys = {topic: one.name for topic, one in named.items() if one and ours in ("", one.name)}
    return ChannelListener(ends.kafka, surveys, request.where) if surveys else None


def _by_listener(
    client: Consumer, request: ReadRequest, listener: AnyListener, decoder: AlertDecoder
) -> RecordSource:
    plan, repair = request.plan, RecordFetcher(request.endpoints.kafka)
    legs: dict[str, Any] = {"listener": listener, "repair": repair, "decoder": decoder}
    if plan.group:
        return MulticastGroupSource(client, plan, commit_interval=request.commit_interval, **legs)
    return MulticastSource(client, plan, **legs)


def _unbounded(client: Consumer, request: ReadRequest) -> RecordSource:
    """Return the source of topics that are named, or chosen; shared with a group, or not."""
    plan, commit_interval, ends = request.plan, request.commit_interval, request.endpoints
    if plan.choose and plan.group:
        return ChosenGroupSource(client, plan, plan.choose, commit_interval=commit_interval)
    if plan.choose:
        return ChosenSource(client, plan, plan.choose)
    if plan.group:
        return GroupSource(client, plan, commit_interval=commit_interval)
    if plan.since and ends.archive:
        return ArchivedSource(client, plan, ArchiveClient(ends.archive, login(ends.kafka)))
    return RecordSource(client, plan)


def schema_for(
    version: int | str | Mapping[str, Any], lookup: Callable[[int], Mapping[str, Any]]
) -> Mapping[str, Any]:
    """Return the schema that *version* names.

    Args:
        version: A schema, an id, or ``MAJOR.MINOR``, whose id is 100 × major + minor, as Rubin
            numbers them.
        lookup: Gives the schema of an id.

    Raises:
        ValueError: It is none of these.
        UnknownSchemaError: Nobody knows that id; as RegistryAwayError, where asking again may help.
    """
    if isinstance(version, Mapping):
        return version
    text = str(version)
    if named := VERSION.fullmatch(text):
        return lookup(100 * int(named[1]) + int(named[2]))
    if not text.isdecimal():
        raise ValueError(f"as_version={version!r} is neither a schema, nor its id, nor a version like 11.0")
    return lookup(int(text))
